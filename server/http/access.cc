#include "server/http/access.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "server/http/text.h"

namespace normlab::http {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";

// Browsers leave out the scheme's own port, in Host and in Origin.
std::string WithoutDefaultPort(std::string_view host, std::string_view scheme) {
  return Lower(WithoutSuffix(host, scheme == kHttp ? ":80" : ":443"));
}

// An IPv6 address needs brackets before a port.
std::string HostPort(std::string_view host, uint16_t port) {
  const bool bare_ipv6 = host.find(':') != host.npos && !host.starts_with('[');
  return bare_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

AllowedHosts::AllowedHosts(std::string_view bound_host, uint16_t port,
                           const std::vector<std::string>& configured) {
  for (const std::string_view host : {bound_host, std::string_view("localhost"),
                                      std::string_view("127.0.0.1"), std::string_view("::1")}) {
    Add(fmt::format("{}{}", kHttp, HostPort(host, port)));
  }
  for (const std::string& host : configured) Add(host);
}

void AllowedHosts::Add(std::string_view host) {
  host = WithoutSuffix(host, "/");
  if (host.find("://") == host.npos) {
    // The entry does not say how browsers come to it: perhaps through a proxy with TLS.
    Add(fmt::format("{}{}", kHttp, host));
    Add(fmt::format("{}{}", kHttps, host));
    return;
  }
  const std::string_view scheme = StartsWithIgnoreCase(host, kHttps) ? kHttps : kHttp;
  host.remove_prefix(host.find("://") + 3);
  const std::string name = WithoutDefaultPort(host, scheme);
  hosts_.insert(name);
  origins_.insert(fmt::format("{}{}", scheme, name));
}

bool AllowedHosts::HostAllowed(std::string_view host, std::string_view local) const {
  return hosts_.count(WithoutDefaultPort(host, kHttp)) > 0 ||
         hosts_.count(WithoutDefaultPort(host, kHttps)) > 0 ||
         WithoutDefaultPort(host, kHttp) == WithoutDefaultPort(local, kHttp);
}

bool AllowedHosts::OriginAllowed(std::string_view origin, std::string_view local) const {
  return origins_.count(Lower(origin)) > 0 ||
         Lower(origin) == fmt::format("{}{}", kHttp, WithoutDefaultPort(local, kHttp));
}

std::optional<std::string_view> BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!StartsWithIgnoreCase(authorization, kScheme)) return std::nullopt;
  const std::string_view token = Trim(authorization.substr(kScheme.size()));
  if (token.empty()) return std::nullopt;
  return token;
}

}  // namespace normlab::http
