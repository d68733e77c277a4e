#include "server/http/access.h"

#include "gtest/gtest.h"

namespace normlab::http {
namespace {

const AllowedHosts& Loopback() {
  static const AllowedHosts hosts("127.0.0.1", 8710, {"https://lab.example.org", "gpu:9000"});
  return hosts;
}

TEST(AllowedHosts, KnowsItsOwnNames) {
  for (const char* host : {"127.0.0.1:8710", "localhost:8710", "LocalHost:8710", "[::1]:8710",
                           "lab.example.org", "Lab.Example.org:443", "gpu:9000"}) {
    EXPECT_TRUE(Loopback().HostAllowed(host, "127.0.0.1:8710")) << host;
  }
}

TEST(AllowedHosts, RefusesForeignNames) {
  for (const char* host :
       {"", "evil.example", "evil.example:8710", "localhost", "localhost:80", "localhost:8711",
        "127.0.0.1", "127.0.0.1:8710.evil.example", "127.0.0.1:8710@evil", "localhost.:8710",
        "xlocalhost:8710", "lab.example.org:8710", "192.168.0.1:8710", "http://localhost:8710"}) {
    EXPECT_FALSE(Loopback().HostAllowed(host, "127.0.0.1:8710")) << host;
  }
}

TEST(AllowedHosts, AllowsTheAddressThatTheConnectionCameInOn) {
  const AllowedHosts any("0.0.0.0", 8710, {});
  EXPECT_TRUE(any.HostAllowed("10.1.2.3:8710", "10.1.2.3:8710"));
  EXPECT_FALSE(any.HostAllowed("10.1.2.4:8710", "10.1.2.3:8710"));
  EXPECT_TRUE(any.OriginAllowed("http://10.1.2.3:8710", "10.1.2.3:8710"));
  EXPECT_FALSE(any.OriginAllowed("https://10.1.2.3:8710", "10.1.2.3:8710"));
}

TEST(AllowedHosts, KnowsItsOwnPages) {
  for (const char* origin : {"http://localhost:8710", "http://127.0.0.1:8710", "http://[::1]:8710",
                             "https://lab.example.org", "http://gpu:9000", "https://gpu:9000"}) {
    EXPECT_TRUE(Loopback().OriginAllowed(origin, "127.0.0.1:8710")) << origin;
  }
}

TEST(AllowedHosts, RefusesForeignPages) {
  for (const char* origin :
       {"", "null", "http://evil.example", "https://localhost:8710", "http://localhost",
        "http://localhost:8888", "http://lab.example.org", "localhost:8710",
        "http://localhost:8710/", "http://localhost:8710.evil.example"}) {
    EXPECT_FALSE(Loopback().OriginAllowed(origin, "127.0.0.1:8710")) << origin;
  }
}

TEST(AllowedHosts, LeavesOutTheDefaultPortAsBrowsersDo) {
  const AllowedHosts hosts("::1", 80, {});
  EXPECT_TRUE(hosts.HostAllowed("localhost", "[::1]:80"));
  EXPECT_TRUE(hosts.HostAllowed("localhost:80", "[::1]:80"));
  EXPECT_TRUE(hosts.HostAllowed("[::1]", "[::1]:80"));
  EXPECT_TRUE(hosts.OriginAllowed("http://localhost", "[::1]:80"));
}

TEST(BearerToken, IsOfItsSchemeOnly) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bearer  abc "), "abc");
  EXPECT_EQ(BearerToken(""), std::nullopt);
  EXPECT_EQ(BearerToken("Bearer"), std::nullopt);
  EXPECT_EQ(BearerToken("Bearer  "), std::nullopt);
  EXPECT_EQ(BearerToken("Basic abc"), std::nullopt);
  EXPECT_EQ(BearerToken("Bearerabc"), std::nullopt);
}

}  // namespace
}  // namespace normlab::http
