// Identifiers and secrets.
#ifndef NORMLAB_SERVER_BASE_IDS_H_
#define NORMLAB_SERVER_BASE_IDS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace normlab {

// ULIDs (https://github.com/ulid/spec): 26 characters of Crockford's base 32, 48 bits of
// milliseconds and 80 random bits; those made by one generator rise, also within a millisecond and
// when the clock goes back. Thread-safe.
class UlidGenerator {
 public:
  // What Next makes comes after `id`, made by whomever; no more than that if it is none.
  void StartAfter(std::string_view id);
  std::string Next(int64_t wall_micros);

 private:
  std::mutex mutex_;
  uint64_t last_millis_ = 0;
  uint64_t random_high_ = 0;  // 16 bits
  uint64_t random_low_ = 0;   // 64 bits
};

// True for 26 characters of Crockford's base 32 that fit in 128 bits.
bool IsUlid(std::string_view text);

// `bytes` bytes from the kernel's generator, as lower-case hexadecimal digits.
std::string RandomHex(int bytes);

// SHA-256 of `text`, as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view text);

// Equality whose duration does not tell where two secrets differ.
bool EqualSecrets(std::string_view a, std::string_view b);

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_IDS_H_
