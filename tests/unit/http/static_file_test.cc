#include "server/http/static_file.h"

#include <zlib.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace normlab::http {
namespace {

std::string Gzip(std::string_view text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string HeaderOf(const Answer& answer, std::string_view name) {
  const auto found = std::find_if(answer.headers.begin(), answer.headers.end(),
                                  [name](const auto& header) { return header.first == name; });
  return found == answer.headers.end() ? "" : found->second;
}

TEST(StaticAnswer, SendsGzipOnlyToThoseWhoTakeIt) {
  const std::string plain(100000, 'x');
  const std::string packed = Gzip(plain);
  const StaticFile file = {"text/css", "\"abc\"", packed, true, true};
  for (const char* accepts : {"gzip", "br, gzip;q=0.5", "GZIP", "*", "deflate, *;q=0.1"}) {
    const Answer answer = StaticAnswer(file, "", accepts);
    EXPECT_EQ(HeaderOf(answer, "Content-Encoding"), "gzip") << accepts;
    EXPECT_EQ(answer.content(), packed);
  }
  for (const char* accepts : {"", "br", "gzip;q=0", "gzip; q=0.0", "identity", "*, gzip;q=0"}) {
    const Answer answer = StaticAnswer(file, "", accepts);
    EXPECT_EQ(HeaderOf(answer, "Content-Encoding"), "") << accepts;
    EXPECT_EQ(answer.content(), plain);
    EXPECT_EQ(HeaderOf(answer, "Vary"), "Accept-Encoding");
  }
}

TEST(StaticAnswer, SaysWhenTheClientHasIt) {
  const StaticFile file = {"text/css", "\"abc\"", "body{}", false, false};
  for (const char* has : {"\"abc\"", "W/\"abc\"", "\"x\", W/\"abc\"", "*"}) {
    const Answer answer = StaticAnswer(file, has, "");
    EXPECT_EQ(answer.status, 304) << has;
    EXPECT_EQ(answer.content(), "");
    EXPECT_EQ(HeaderOf(answer, "ETag"), "W/\"abc\"");
  }
  EXPECT_EQ(StaticAnswer(file, "\"abcd\"", "").status, 200);
}

TEST(StaticAnswer, CachesForEverOnlyWhatNeverChanges) {
  EXPECT_EQ(
      HeaderOf(StaticAnswer({"text/html", "\"a\"", "x", false, false}, "", ""), "Cache-Control"),
      "no-cache");
  EXPECT_EQ(
      HeaderOf(StaticAnswer({"text/html", "\"a\"", "x", false, true}, "", ""), "Cache-Control"),
      "public, max-age=31536000, immutable");
}

TEST(StaticAnswer, DamagedGzipIsAnErrorNotHalfAFile) {
  const std::string packed = Gzip(std::string(100000, 'x')).substr(0, 40);
  EXPECT_EQ(StaticAnswer({"text/css", "\"abc\"", packed, true, true}, "", "").status, 500);
}

}  // namespace
}  // namespace normlab::http
