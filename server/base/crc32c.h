// CRC-32C (Castagnoli, RFC 3720): what tells a whole record from a torn one.
#ifndef NORMLAB_SERVER_BASE_CRC32C_H_
#define NORMLAB_SERVER_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace normlab {

// Of `data`; or of what `previous` was computed from, followed by `data`.
uint32_t Crc32c(std::string_view data, uint32_t previous = 0);

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_CRC32C_H_
