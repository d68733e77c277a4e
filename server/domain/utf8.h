// Well-formed text.
#ifndef NORMLAB_SERVER_DOMAIN_UTF8_H_
#define NORMLAB_SERVER_DOMAIN_UTF8_H_

#include <string_view>

namespace normlab::domain {

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
// Anything else would be refused by protobuf later, in words that nobody understands.
bool IsUtf8(std::string_view text);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_UTF8_H_
