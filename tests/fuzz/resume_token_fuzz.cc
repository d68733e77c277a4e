// Resume tokens: what a client sends back is one that the server gave, or refused by name.
#include <cstdint>
#include <string>

#include "server/app/run_watch.h"
#include "tests/fuzz/property.h"

using normlab::app::MakeResumeToken;
using normlab::app::ReadResumeToken;
using normlab::fuzz::Input;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto latest = input.Value<uint64_t>();
  const auto sequence = input.Value<uint64_t>();
  const std::string store(input.Text());
  const std::string token(input.Rest());

  // Whatever comes in is read as exactly one number, or refused.
  const absl::StatusOr<uint64_t> read = ReadResumeToken(token, store, latest);
  if (read.ok()) {
    REQUIRE(*read <= latest);
    REQUIRE(MakeResumeToken(store, *read) == token);
  } else {
    REQUIRE(absl::IsInvalidArgument(read.status()) || absl::IsOutOfRange(read.status()));
  }

  // The server's own come back as what they were, and only to the store that gave them.
  const std::string own = MakeResumeToken(store, sequence);
  const absl::StatusOr<uint64_t> back = ReadResumeToken(own, store, latest);
  if (sequence <= latest) {
    REQUIRE(back.ok() && *back == sequence);
  } else {
    REQUIRE(absl::IsOutOfRange(back.status()));
  }
  REQUIRE(absl::IsOutOfRange(ReadResumeToken(own, store + "X", UINT64_MAX).status()));
  return 0;
}
