// Well-formed text.
#ifndef NORMLAB_SERVER_DOMAIN_UTF8_H_
#define NORMLAB_SERVER_DOMAIN_UTF8_H_

#include <cstddef>
#include <string_view>

namespace normlab::domain {

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
// Anything else would be refused by protobuf later, in words that nobody understands.
bool IsUtf8(std::string_view text);

// Index of the first control character (U+0000 to U+001F, U+007F to U+009F) of well-formed UTF-8,
// or npos. Terminals obey those of the second group like the first.
size_t FindControl(std::string_view text);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_UTF8_H_
