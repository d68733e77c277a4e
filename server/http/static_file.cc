#include "server/http/static_file.h"

#include <zlib.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "server/http/errors.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

// RFC 9110 12.5.3: "gzip", "gzip;q=0.5", "*"; a weight of 0 refuses. A named one counts before *.
bool AcceptsGzip(std::string_view accept_encoding) {
  std::optional<bool> any;
  for (const std::string_view item : Split(accept_encoding, ',')) {
    const std::string_view coding = Trim(item.substr(0, item.find(';')));
    const size_t q = item.find("q=");
    const bool taken = q == item.npos || ToDouble(Trim(item.substr(q + 2))).value_or(0) > 0;
    if (EqualsIgnoreCase(coding, "gzip")) return taken;
    if (coding == "*") any = taken;
  }
  return any.value_or(false);
}

bool Matches(std::string_view if_none_match, std::string_view etag) {
  for (const std::string_view item : Split(if_none_match, ',')) {
    std::string_view tag = Trim(item);
    if (tag == "*") return true;
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag) return true;
  }
  return false;
}

// For clients without gzip, such as plain curl. The files are our own and small.
std::optional<std::string> Inflate(std::string_view packed) {
  z_stream stream = {};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string plain;
  char piece[16384];
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    result = inflate(&stream, Z_NO_FLUSH);
    plain.append(piece, sizeof(piece) - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return plain;
}

}  // namespace

Answer StaticAnswer(const StaticFile& file, std::string_view if_none_match,
                    std::string_view accept_encoding) {
  Answer answer;
  // Weak, because the same tag stands for the file and for its gzip form.
  answer.headers.emplace_back("ETag", fmt::format("W/{}", file.etag));
  answer.headers.emplace_back("Cache-Control",
                              file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  if (file.gzip) answer.headers.emplace_back("Vary", "Accept-Encoding");
  if (Matches(if_none_match, file.etag)) {
    answer.status = 304;
    return answer;
  }
  answer.content_type = file.content_type;
  if (!file.gzip) {
    answer.fixed_body = file.bytes;
  } else if (AcceptsGzip(accept_encoding)) {
    answer.headers.emplace_back("Content-Encoding", "gzip");
    answer.fixed_body = file.bytes;
  } else {
    std::optional<std::string> plain = Inflate(file.bytes);
    if (!plain) return ErrorAnswer(absl::InternalError("a file of the dashboard is damaged"));
    answer.body = *std::move(plain);
  }
  return answer;
}

}  // namespace normlab::http
