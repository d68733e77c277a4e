// A target whose property breaks: for the test of what becomes of such an input.
#include <cstdint>
#include <string_view>

#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  REQUIRE(!input.starts_with("abort"));
  // Behind the input's end, which is what a sanitizer sees.
  if (input.starts_with("overrun"))
    static_cast<void>(*static_cast<const volatile uint8_t*>(data + size));
  return 0;
}
