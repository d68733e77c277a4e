// What every fuzz target uses: a check that ends the program, and a reader that makes values of an
// input's bytes.
#ifndef NORMLAB_TESTS_FUZZ_PROPERTY_H_
#define NORMLAB_TESTS_FUZZ_PROPERTY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// A property that must hold for every input. Aborts, which libFuzzer and the replay both report
// together with the input.
#define REQUIRE(condition)                                                     \
  do {                                                                         \
    if (!(condition)) ::normlab::fuzz::Broken(__FILE__, __LINE__, #condition); \
  } while (false)

namespace normlab::fuzz {

[[noreturn]] inline void Broken(const char* file, int line, const char* property) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, property);
  std::abort();
}

// Makes values of bytes, front to back; zeroes when they have run out.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view Rest() { return Take(rest_.size()); }
  // At most `size` bytes.
  std::string_view Take(size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <typename Number>
  Number Value() {
    Number number{};
    const std::string_view bytes = Take(sizeof(number));
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  // A text of up to 255 bytes, which say their number first.
  std::string_view Text() { return Take(Value<uint8_t>()); }
  // Up to the next line break, which is taken and left out.
  std::string_view Line() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = Take(end);
    Take(1);
    return line;
  }

 private:
  std::string_view rest_;
};

// OK, or an error that names the caller's mistake.
inline void RequireClientError(const absl::Status& status) {
  REQUIRE(status.ok() || absl::IsInvalidArgument(status));
  REQUIRE(status.ok() || !status.message().empty());
}

}  // namespace normlab::fuzz

#endif  // NORMLAB_TESTS_FUZZ_PROPERTY_H_
