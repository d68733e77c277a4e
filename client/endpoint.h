// Where the server is, and the proof that it is ours.
//
// NORMLAB_SERVER (or --server) with NORMLAB_TOKEN names a server on TCP; so does `normlab login`,
// unless a data folder is named. Otherwise the server on this machine is found through
// endpoint.json of its data folder, and reached through its unix socket: the socket's folder must
// belong to us alone and the process behind it must run as us (or root), so that nobody else on the
// machine can pose as the server and be handed the token.
#ifndef NORMLAB_CLIENT_ENDPOINT_H_
#define NORMLAB_CLIENT_ENDPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace normlab::client {

struct Endpoint {
  std::string target;  // gRPC target: "unix:/…/normlab.sock" or "host:port"
  std::string socket;  // path of the unix socket; empty for TCP
  std::string token;
  std::string http;  // host:port of the dashboard; empty when unknown
  int64_t pid = 0;   // 0 when unknown
};

// --data-dir, else NORMLAB_DATA_DIR, else normlab below XDG_DATA_HOME (~/.local/share).
std::filesystem::path DataDirectory(const std::string& option);

// OK for HOST:PORT.
absl::Status CheckAddress(const std::string& server);

// Whether that finds a server on TCP, rather than the one of a data folder.
bool GoesOverTcp(const std::string& server_option, const std::string& data_dir_option);

// Finds the server by --server and --data-dir, either of which may be empty. UNAVAILABLE with the
// remedy when there is none.
absl::StatusOr<Endpoint> FindEndpoint(const std::string& server_option,
                                      const std::string& data_dir_option);

// Reads DIR/endpoint.json, which must be ours and closed to others.
absl::StatusOr<Endpoint> ReadEndpointFile(const std::filesystem::path& data_directory);

// Connects once to the socket and checks who owns its folder and who listens. UNAVAILABLE when
// nobody listens, PERMISSION_DENIED when it is somebody else.
absl::Status CheckSocket(const std::string& socket);

// The command that starts a server on this data folder.
std::string StartCommand(const std::filesystem::path& data_directory);

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_ENDPOINT_H_
