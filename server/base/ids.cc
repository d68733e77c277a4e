#include "server/base/ids.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "absl/strings/escaping.h"

namespace normlab {
namespace {

constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void FillRandom(void* out, size_t size) {
  auto* bytes = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = getrandom(bytes, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();  // no kernel generator: no secret made here could be trusted
    }
    bytes += got;
    size -= static_cast<size_t>(got);
  }
}

}  // namespace

void UlidGenerator::StartAfter(std::string_view id) {
  if (!IsUlid(id)) return;
  unsigned __int128 value = 0;
  for (const char c : id) value = (value << 5) | std::string_view(kCrockford).find(c);
  std::lock_guard lock(mutex_);
  last_millis_ = static_cast<uint64_t>(value >> 80);
  random_high_ = static_cast<uint64_t>(value >> 64) & 0xFFFF;
  random_low_ = static_cast<uint64_t>(value);
}

std::string UlidGenerator::Next(int64_t wall_micros) {
  std::lock_guard lock(mutex_);
  const uint64_t millis = static_cast<uint64_t>(wall_micros) / 1000;
  if (millis > last_millis_) {
    last_millis_ = millis;
    FillRandom(&random_high_, sizeof(random_high_));
    FillRandom(&random_low_, sizeof(random_low_));
    random_high_ &= 0x7FFF;  // the top bit is left free, so that counting up cannot overflow
  } else if (++random_low_ == 0) {
    ++random_high_;
  }
  unsigned __int128 value = last_millis_;
  value = (value << 16) | (random_high_ & 0xFFFF);
  value = (value << 64) | random_low_;
  std::string text(26, '0');
  for (int i = 25; i >= 0; --i) {
    text[i] = kCrockford[static_cast<size_t>(value & 31)];
    value >>= 5;
  }
  return text;
}

bool IsUlid(std::string_view text) {
  if (text.size() != 26 || text[0] > '7') return false;
  return text.find_first_not_of(kCrockford) == std::string_view::npos;
}

std::string RandomHex(int bytes) {
  std::string raw(static_cast<size_t>(bytes), '\0');
  FillRandom(raw.data(), raw.size());
  return absl::BytesToHexString(raw);
}

std::string Sha256Hex(std::string_view text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return absl::BytesToHexString(digest);
}

bool EqualSecrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace normlab
