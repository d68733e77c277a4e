#include "server/http/target.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes once: what a decoded text looks like is never decoded again.
std::optional<std::string> Decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) {
      c = ' ';
    } else if (c == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    decoded += c;
  }
  if (!IsUtf8(decoded)) return std::nullopt;
  return decoded;
}

absl::Status BadTarget(std::string_view part) {
  return absl::InvalidArgumentError(fmt::format(
      "malformed {}: escapes must be %XX and the text UTF-8 without control characters", part));
}

absl::StatusOr<Parameters> ParseQuery(std::string_view query) {
  Parameters parameters;
  for (const std::string_view pair : Split(query, '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const std::optional<std::string> name = Decode(pair.substr(0, equals), true);
    const std::optional<std::string> value =
        equals == std::string_view::npos ? "" : Decode(pair.substr(equals + 1), true);
    if (!name || !value) return BadTarget("query");
    parameters.emplace_back(*name, *value);
  }
  return parameters;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view target) {
  target = target.substr(0, target.find('#'));
  if (target.empty() || target.front() != '/') {
    return absl::InvalidArgumentError("the request's target must be a path: /api/v1/runs");
  }
  const size_t question = target.find('?');
  std::string_view path = target.substr(0, question);

  Target result;
  const std::optional<std::string> whole = Decode(path, false);
  if (!whole) return BadTarget("path");
  result.path = *whole;
  const size_t colon = path.find(':', path.rfind('/'));
  if (colon != std::string_view::npos) {
    result.verb = *Decode(path.substr(colon + 1), false);
    path = path.substr(0, colon);
  }
  // Split before decoding: an encoded slash belongs to a name.
  for (const std::string_view segment : Split(path.substr(1), '/')) {
    result.segments.push_back(*Decode(segment, false));
  }
  if (question != std::string_view::npos) {
    absl::StatusOr<Parameters> parameters = ParseQuery(target.substr(question + 1));
    if (!parameters.ok()) return parameters.status();
    result.parameters = *std::move(parameters);
  }
  return result;
}

std::vector<std::string> Query::Values(std::string_view name) {
  known_.emplace_back(name);
  std::vector<std::string> values;
  for (const auto& [given, value] : parameters_) {
    if (SnakeCase(given) == name) values.push_back(value);
  }
  return values;
}

std::string Query::Text(std::string_view name) {
  std::vector<std::string> values = Values(name);
  if (values.size() > 1) Fault(name, "given more than once");
  return values.empty() ? "" : std::move(values.front());
}

std::vector<std::string> Query::List(std::string_view name) {
  std::vector<std::string> items;
  for (const std::string& value : Values(name)) {
    for (const std::string_view item : Split(value, ',')) {
      if (!item.empty()) items.emplace_back(item);
    }
  }
  return items;
}

template <typename Integer>
Integer Query::Number(std::string_view name) {
  const std::string text = Text(name);
  if (text.empty()) return 0;
  Integer number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) {
    Fault(name, text + " is too large");
  } else if (error != std::errc() || stop != end) {
    Fault(name, fmt::format("\"{}\" is not a whole number", text));
  }
  return number;
}

int32_t Query::Int32(std::string_view name) { return Number<int32_t>(name); }
int64_t Query::Int64(std::string_view name) { return Number<int64_t>(name); }

bool Query::Bool(std::string_view name) {
  const std::vector<std::string> values = Values(name);
  if (values.empty()) return false;
  if (values.size() > 1) Fault(name, "given more than once");
  const std::string& value = values.front();
  if (value.empty() || value == "true" || value == "1") return true;
  if (value != "false" && value != "0") {
    Fault(name, fmt::format("\"{}\" is neither true nor false", value));
  }
  return false;
}

void Query::Fault(std::string_view name, std::string description) {
  faults_.push_back({std::string(name), std::move(description)});
}

absl::Status Query::Done() {
  for (const auto& [given, value] : parameters_) {
    if (std::find(known_.begin(), known_.end(), SnakeCase(given)) == known_.end()) {
      Fault(given, "no such parameter" + DidYouMean(given, known_));
    }
  }
  return faults_.empty() ? absl::OkStatus() : domain::InvalidFields(faults_);
}

}  // namespace normlab::http
