// Tokens of run lists' pages: what the server prints reads back, to the same question only;
// whatever else comes in is refused by name.
#include <cstdint>
#include <string>
#include <utility>

#include "server/app/run_page_token.h"
#include "server/base/ids.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::app::MakePageToken;
using normlab::app::ReadPageToken;
using normlab::fuzz::Input;
using normlab::storage::RunListKey;

RunListKey KeyOf(Input& input) {
  RunListKey key;
  key.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  for (size_t i = 10; i < key.id.size(); ++i) {
    key.id[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[input.Value<uint8_t>() % 32];
  }
  const auto shape = input.Value<uint8_t>();
  for (int i = shape % 9; i > 0; --i) {
    RunListKey::Part part;
    switch (input.Value<uint8_t>() % 5) {
      case 0:
        part.value = input.Value<int64_t>();
        break;
      case 1:
        part.value = input.Value<double>();
        break;
      case 2:
        part.value = std::string(input.Text());
        break;
      case 3:
        part.rank = 1;
        break;
      default:
        part.rank = 2;
    }
    key.parts.push_back(std::move(part));
  }
  return key;
}

void RequireRefused(const absl::Status& status) {
  REQUIRE(absl::IsInvalidArgument(status));
  REQUIRE(status.message().find("page_token") != absl::string_view::npos);
}

// The server's own token, whole, changed, and for another question.
void CheckOwn(const std::string& question, Input& input) {
  const auto place = input.Value<uint16_t>();
  const auto letter = input.Value<char>();
  const std::string token = MakePageToken(question, KeyOf(input));
  const absl::StatusOr<RunListKey> read = ReadPageToken(question, token);
  REQUIRE(read.ok());
  // By the token: a key with NaN in it is not equal to itself.
  REQUIRE(MakePageToken(question, *read) == token);
  RequireRefused(ReadPageToken(question + "X", token).status());
  std::string changed = token;
  changed[place % token.size()] = letter;
  if (changed != token) RequireRefused(ReadPageToken(question, changed).status());
  RequireRefused(ReadPageToken(question, token.substr(0, place % token.size())).status());
}

// Whatever a client sends.
void CheckAny(const std::string& question, const std::string& token) {
  const absl::StatusOr<RunListKey> read = ReadPageToken(question, token);
  if (!read.ok()) {
    RequireRefused(read.status());
    return;
  }
  REQUIRE(normlab::IsUlid(read->id));
  REQUIRE(MakePageToken(question, *read) == token);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string question(input.Text());
  CheckAny(question, std::string(reinterpret_cast<const char*>(data), size));
  CheckOwn(question, input);
  CheckAny(question, std::string(input.Rest()));
  return 0;
}
