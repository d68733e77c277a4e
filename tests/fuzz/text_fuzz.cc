// Text from others on its way to a terminal, a message or a name: never a broken character, never a
// control character, never wider than asked.
#include <cstdint>
#include <string>
#include <vector>

#include "client/term/text.h"
#include "server/domain/nearest.h"
#include "server/domain/spec.h"
#include "server/http/text.h"
#include "tests/fuzz/property.h"

namespace {

bool HasControl(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

void CheckTerminalText(std::string_view text, int width) {
  using namespace normlab::client;
  const std::string clean = Clean(text);
  REQUIRE(normlab::http::IsUtf8(clean) && !HasControl(clean));
  REQUIRE(Clean(clean) == clean);
  const std::string fitted = Fit(clean, width);
  REQUIRE(normlab::http::IsUtf8(fitted));
  REQUIRE(DisplayWidth(fitted) == width);
  REQUIRE(DisplayWidth(Pad(clean, width)) >= width);
  std::string joined;
  for (const std::string& line : Wrap(clean, width)) {
    REQUIRE(normlab::http::IsUtf8(line));
    joined += line;
  }
  // Nothing but spaces is lost by breaking lines.
  std::erase(joined, ' ');
  std::string all = clean;
  std::erase(all, ' ');
  REQUIRE(joined == all);
}

void CheckMessages(std::string_view text, size_t size) {
  using namespace normlab::http;
  const std::string shown = Shortened(text, size);
  REQUIRE(shown.size() <= size + 3);
  if (IsUtf8(text)) REQUIRE(IsUtf8(shown));
  for (const std::string_view piece : Split(text, ',')) Trim(piece);
  REQUIRE(Split(text, ',').size() == static_cast<size_t>(std::ranges::count(text, ',')) + 1);
  REQUIRE(Lower(text).size() == text.size() && EqualsIgnoreCase(text, Lower(text)));
  REQUIRE(SnakeCase(SnakeCase(text)) == SnakeCase(text));
  const std::optional<double> number = ToDouble(text);
  if (number) REQUIRE(!text.empty());
}

// What is taken as a name can be printed, stored and sent.
void CheckName(std::string_view text) {
  if (!normlab::domain::CheckDisplayName("display_name", text).empty()) return;
  REQUIRE(!text.empty() && text.size() <= 300 && !HasControl(text));
  REQUIRE(normlab::http::IsUtf8(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  normlab::fuzz::Input input(data, size);
  const int width = 1 + input.Value<uint8_t>() % 40;
  const std::string_view text = input.Rest();
  CheckTerminalText(text, width);
  CheckMessages(text, static_cast<size_t>(width));
  CheckName(text);
  if (text.size() <= 64) normlab::domain::NearestOf(text, {"layers", "heads", "loss"});
  return 0;
}
