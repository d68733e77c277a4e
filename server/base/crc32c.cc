#include "server/base/crc32c.h"

#include <array>
#include <cstring>

namespace normlab {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the checksum's change by byte b followed by k zero bytes, so that eight bytes need
// eight independent look-ups ("slicing by 8", Kounavis and Berry 2005).
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

uint32_t Crc32c(std::string_view data, uint32_t previous) {
  uint32_t crc = ~previous;
  const char* at = data.data();
  size_t left = data.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);  // little-endian, as spool.cc asserts
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  }
  return ~crc;
}

}  // namespace normlab
