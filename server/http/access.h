// Who may speak to the server, before any call is made: the names under which it may be addressed,
// the pages that may speak to it, and the token that a request brings.
//
// The Host check is what stops a foreign page from reading answers by pointing its own name at
// this machine's address (DNS rebinding). The Origin check stops it from sending requests blindly.
#ifndef NORMLAB_SERVER_HTTP_ACCESS_H_
#define NORMLAB_SERVER_HTTP_ACCESS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::http {

// Immutable, any thread.
class AllowedHosts {
 public:
  // `bound_host` as in the options; `configured` entries are "host:port" or "scheme://host:port".
  AllowedHosts(std::string_view bound_host, uint16_t port,
               const std::vector<std::string>& configured);

  // Whether a Host header may name this server. `local` is the address that the connection came in
  // on ("10.1.2.3:8710"): nobody can point a foreign name at it, since it is no name.
  bool HostAllowed(std::string_view host, std::string_view local) const;
  // Whether a page of this Origin may speak to the server. "null" may not.
  bool OriginAllowed(std::string_view origin, std::string_view local) const;

 private:
  void Add(std::string_view host);

  std::set<std::string> hosts_;
  std::set<std::string> origins_;
};

// The token of an Authorization header; nothing if it is of another scheme.
std::optional<std::string_view> BearerToken(std::string_view authorization);

}  // namespace normlab::http

#endif  // NORMLAB_SERVER_HTTP_ACCESS_H_
