// The spool's layout as spool.h describes it, for its writer and its reader only.
#ifndef NORMLAB_SERVER_BASE_SPOOL_FORMAT_H_
#define NORMLAB_SERVER_BASE_SPOOL_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "server/base/crc32c.h"

namespace normlab::spool_format {

static_assert(std::endian::native == std::endian::little, "the spool is little-endian");

inline constexpr char kMagic[9] = "NLSPOOL\n";
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kControlBytes = 64 << 10;   // a multiple of every page size in use
inline constexpr uint64_t kMaxCapacity = 1ULL << 30;  // a reader copies what it holds
inline constexpr size_t kHeadOffset = 64;
inline constexpr size_t kTailOffset = 128;

struct Fixed {
  char magic[8];
  uint32_t version;
  uint32_t control_bytes;
  uint64_t capacity;
  uint32_t checksum;  // of what stands before it
};

struct RecordHeader {
  uint64_t sequence;
  uint32_t length;
  uint32_t checksum;
};
static_assert(sizeof(RecordHeader) == 16);

inline uint64_t RecordBytes(uint64_t length) {
  return sizeof(RecordHeader) + ((length + 7) & ~7ULL);
}

inline std::string_view Bytes(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

inline uint32_t RecordChecksum(uint64_t sequence, std::string_view payload) {
  char head[12];
  const auto length = static_cast<uint32_t>(payload.size());
  std::memcpy(head, &sequence, 8);
  std::memcpy(head + 8, &length, 4);
  return Crc32c(payload, Crc32c({head, sizeof(head)}));
}

inline Fixed MakeFixed(uint64_t capacity) {
  Fixed fixed{};
  std::memcpy(fixed.magic, kMagic, 8);
  fixed.version = kVersion;
  fixed.control_bytes = kControlBytes;
  fixed.capacity = capacity;
  fixed.checksum = Crc32c(Bytes(&fixed, offsetof(Fixed, checksum)));
  return fixed;
}

// What is wrong with the control block of a file of `file_bytes`; empty when nothing is.
inline std::string Fault(const Fixed& fixed, uint64_t file_bytes, uint64_t head, uint64_t tail) {
  if (std::memcmp(fixed.magic, kMagic, 8) != 0) return "it does not begin like a spool";
  if (fixed.version != kVersion) return absl::StrCat("its version is ", fixed.version, ", not 1");
  if (fixed.checksum != Crc32c(Bytes(&fixed, offsetof(Fixed, checksum)))) {
    return "the checksum of its first bytes does not match";
  }
  if (fixed.control_bytes != kControlBytes || fixed.capacity == 0 ||
      fixed.capacity % kControlBytes != 0 || fixed.capacity > kMaxCapacity) {
    return "its sizes make no sense";
  }
  if (file_bytes != kControlBytes + fixed.capacity) {
    return absl::StrCat("it has ", file_bytes, " bytes, not ", kControlBytes + fixed.capacity);
  }
  // The record at the tail, at least, lies between them.
  if (head % 8 != 0 || tail % 8 != 0 || tail >= head || head - tail < sizeof(RecordHeader) ||
      head - tail > fixed.capacity) {
    return absl::StrCat("its head ", head, " and tail ", tail, " make no sense");
  }
  return "";
}

}  // namespace normlab::spool_format

#endif  // NORMLAB_SERVER_BASE_SPOOL_FORMAT_H_
