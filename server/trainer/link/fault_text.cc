#include "server/trainer/link/fault_text.h"

#include <cstdio>
#include <regex>

#include "server/base/strings.h"

namespace normlab::trainer {
namespace {

constexpr char kSize[] = R"(([0-9.]+ ?[KMG]?i?B))";

// The size behind `before`, as it was written; "an unknown amount" when there is none.
std::string SizeIn(const std::string& text, const std::string& before,
                   const std::string& after = "") {
  std::smatch found;
  if (std::regex_search(text, found, std::regex(StrCat(before, kSize, after)))) return found[1];
  return "an unknown amount";
}

std::string Gibibytes(int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

}  // namespace

std::string FaultText(const std::string& what, int64_t budget) {
  // Torch's sentence and the engine's own.
  const bool torch = what.find("CUDA out of memory") != std::string::npos;
  if (!torch && what.find("out of GPU memory") == std::string::npos) return what;
  const std::string wanted = SizeIn(what, torch ? "Tried to allocate " : "asked for ");
  const std::string total = SizeIn(what, torch ? "total capacity of " : " of ", torch ? "" : " are");
  const std::string free = SizeIn(what, torch ? "of which " : "; ", torch ? "" : " of");
  return StrCat("out of GPU memory: it wanted ", wanted, " more, ", free, " of ", total,
                " were free; its budget is ",
                budget > 0 ? Gibibytes(budget) : std::string("the whole GPU"));
}

}  // namespace normlab::trainer
