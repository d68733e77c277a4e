// The target of an HTTP request: refused, or text that is safe to look up, and the same again when
// it is written out and read once more.
#include <cstdint>
#include <string>
#include <vector>

#include "server/http/routes.h"
#include "server/http/target.h"
#include "server/http/text.h"
#include "tests/fuzz/property.h"

namespace {

using normlab::http::Query;
using normlab::http::Target;

bool IsSafe(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return normlab::http::IsUtf8(text);
}

std::string Escaped(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    escaped += '%';
    escaped += kHex[byte >> 4];
    escaped += kHex[byte & 15];
  }
  return escaped;
}

std::string Written(const Target& target) {
  std::string text;
  for (const std::string& segment : target.segments) text += "/" + Escaped(segment);
  // An empty verb is none, and ':' behind an empty last segment would begin one.
  if (!target.verb.empty()) text += ":" + Escaped(target.verb);
  char separator = '?';
  for (const auto& [name, value] : target.parameters) {
    text += separator + Escaped(name) + "=" + Escaped(value);
    separator = '&';
  }
  return text;
}

void RequireSame(const Target& a, const Target& b) {
  REQUIRE(a.segments == b.segments);
  REQUIRE(a.verb == b.verb);
  REQUIRE(a.parameters == b.parameters);
}

// Every way in which handlers read a query ends in OK or in a named fault.
void ReadQuery(const Target& target) {
  Query query(target.parameters);
  query.Text("filter");
  query.List("names");
  const int32_t page = query.Int32("page_size");
  const int64_t from = query.Int64("from");
  query.Bool("tail");
  const absl::Status status = query.Done();
  normlab::fuzz::RequireClientError(status);
  REQUIRE(IsSafe(std::string_view(status.message().data(), status.message().size())));
  for (const auto& [name, value] : target.parameters) {
    if (!status.ok()) break;
    if (name == "page_size" && !value.empty()) REQUIRE(std::stoi(value) == page);
    if (name == "from" && !value.empty()) REQUIRE(std::stoll(value) == from);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Target> target = normlab::http::ParseTarget(text);
  normlab::fuzz::RequireClientError(target.status());
  if (!target.ok()) return 0;
  REQUIRE(IsSafe(target->path) && IsSafe(target->verb));
  for (const std::string& segment : target->segments) REQUIRE(IsSafe(segment));
  for (const auto& [name, value] : target->parameters) REQUIRE(IsSafe(name) && IsSafe(value));

  const absl::StatusOr<Target> again = normlab::http::ParseTarget(Written(*target));
  REQUIRE(again.ok());
  RequireSame(*again, *target);
  for (const char* method : {"GET", "HEAD", "POST", "PATCH", "DELETE"}) {
    const normlab::http::Match match = normlab::http::FindRoute(method, *target);
    REQUIRE(match.route == nullptr || !match.allow.empty());
  }
  normlab::fuzz::RequireClientError(normlab::http::WatchRequest(*target, "").status());
  ReadQuery(*target);
  return 0;
}
