#include "server/domain/utf8.h"

#include <cstddef>
#include <cstdint>

namespace normlab::domain {

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int following = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    // 0x80..0xbf cannot lead; 0xc0 and 0xc1 would be overlong; from 0xf5 on, above U+10FFFF.
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < static_cast<size_t>(following))
      return false;
    uint32_t point = lead & (0x3f >> following);
    for (int k = 0; k < following; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (following == 2 && point < 0x800) || (following == 3 && point < 0x10000);
    if (overlong || (point >= 0xd800 && point <= 0xdfff) || point > 0x10ffff) return false;
  }
  return true;
}

size_t FindControl(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return i;
    const bool second = c == 0xc2 && i + 1 < text.size();  // leads U+0080 to U+00BF
    if (second && static_cast<unsigned char>(text[i + 1]) < 0xa0) return i;
  }
  return std::string_view::npos;
}

}  // namespace normlab::domain
