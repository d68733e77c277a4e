// SHA-1 (FIPS 180-4) of a short message. Used only to derive random keys from parameter names,
// never for security.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_SHA1_H_
#define NORMLAB_SERVER_TRAINER_MODEL_SHA1_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace normlab::trainer {

// The digest as five words, most significant first.
std::array<uint32_t, 5> Sha1(std::string_view message);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_SHA1_H_
