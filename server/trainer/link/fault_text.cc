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
  if (what.find("CUDA out of memory") == std::string::npos) return what;
  return StrCat("out of GPU memory: asked for ", SizeIn(what, "Tried to allocate "), ", held ",
                SizeIn(what, "this process has ", " memory in use"), ", its budget is ",
                budget > 0 ? Gibibytes(budget) : std::string("the whole GPU"), "; the GPU has ",
                SizeIn(what, "of which "), " of ", SizeIn(what, "total capacity of "), " free; ",
                budget > 0 ? "others hold what is missing: try again when they have ended, or ask "
                             "for it alone (--exclusive)"
                           : "make batch_size or the model smaller");
}

}  // namespace normlab::trainer
