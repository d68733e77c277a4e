#include "server/app/run_page_token.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "server/base/ids.h"
#include "server/domain/violations.h"

namespace normlab::app {
namespace {

using storage::RunListKey;
using Json = nlohmann::json;

constexpr size_t kFingerprint = 16;  // hexadecimal digits
constexpr size_t kLongestToken = 16'000;
constexpr int64_t kMissingRank = 2;
constexpr size_t kParts = 3;  // the first of the key's parts is here

std::string Fingerprint(std::string_view question) {
  return Sha256Hex(question).substr(0, kFingerprint);
}

// [rank], [rank, 3], [rank, "text in base64"], or [rank, [bits of a double]]: JSON has no
// infinities, and no bytes that are not UTF-8.
Json PartJson(const RunListKey::Part& part) {
  Json json = Json::array({part.rank});
  if (const auto* integer = std::get_if<int64_t>(&part.value)) json.push_back(*integer);
  if (const auto* text = std::get_if<std::string>(&part.value)) {
    json.push_back(absl::WebSafeBase64Escape(*text));
  }
  if (const auto* real = std::get_if<double>(&part.value)) {
    json.push_back(Json::array({std::bit_cast<int64_t>(*real)}));
  }
  return json;
}

bool ReadPart(const Json& json, RunListKey::Part& part) {
  if (!json.is_array() || json.empty() || json.size() > 2 || !json[0].is_number_integer()) {
    return false;
  }
  part.rank = json[0].get<int64_t>();
  if (part.rank < 0 || part.rank > kMissingRank) return false;
  if (json.size() == 1) return part.rank > 0;
  const Json& value = json[1];
  if (value.is_number_integer()) {
    part.value = value.get<int64_t>();
  } else if (value.is_string()) {
    std::string text;
    if (!absl::WebSafeBase64Unescape(value.get_ref<const std::string&>(), &text)) return false;
    part.value = std::move(text);
  } else if (value.is_array() && value.size() == 1 && value[0].is_number_integer()) {
    part.value = std::bit_cast<double>(value[0].get<int64_t>());
  } else {
    return false;
  }
  return part.rank == 0;
}

// [fingerprint of the question, fingerprint of the rest, id, part...]
bool ReadKey(const Json& json, RunListKey& key) {
  if (!json.is_array() || json.size() < kParts || !json[0].is_string() || !json[2].is_string()) {
    return false;
  }
  key.id = json[2].get<std::string>();
  if (!IsUlid(key.id)) return false;
  for (size_t i = kParts; i < json.size(); ++i) {
    if (!ReadPart(json[i], key.parts.emplace_back())) return false;
  }
  return true;
}

absl::Status Wrong(std::string description) {
  return domain::InvalidFields({{"page_token", std::move(description)}});
}

}  // namespace

std::string MakePageToken(std::string_view question, const RunListKey& key) {
  Json json = Json::array({Fingerprint(question), "", key.id});
  for (const RunListKey::Part& part : key.parts) json.push_back(PartJson(part));
  json[1] = Fingerprint(json.dump());
  return absl::WebSafeBase64Escape(json.dump());
}

absl::StatusOr<RunListKey> ReadPageToken(std::string_view question, const std::string& token) {
  std::string text;
  RunListKey key;
  const Json json = token.size() <= kLongestToken && absl::WebSafeBase64Unescape(token, &text)
                        ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                        : Json();
  constexpr char kForeign[] = "is not one that this server gave";
  if (!ReadKey(json, key)) return Wrong(kForeign);
  if (json[0].get_ref<const std::string&>() != Fingerprint(question)) {
    return Wrong(
        "belongs to another list; the filter and the order must be those of the page before");
  }
  // Not a letter of it was changed.
  if (MakePageToken(question, key) != token) return Wrong(kForeign);
  return key;
}

}  // namespace normlab::app
