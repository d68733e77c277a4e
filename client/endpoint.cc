#include "client/endpoint.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/login_file.h"
#include "client/term/text.h"

namespace normlab::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status NoServer(const std::filesystem::path& data_directory, const std::string& why) {
  return absl::UnavailableError(
      fmt::format("no server: {}\nstart one with: {}", why, StartCommand(data_directory)));
}

bool OursOrRoots(uid_t uid) { return uid == ::geteuid() || uid == 0; }

// A raw connection, because gRPC does not say who is at the other end of a unix socket.
absl::Status CheckPeer(int fd, const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(
        fmt::format("nobody listens on {} ({})", socket, std::strerror(errno)));
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !OursOrRoots(peer.uid)) {
    return absl::PermissionDeniedError(
        fmt::format("the process behind {} belongs to user {}, not to you", socket, peer.uid));
  }
  return absl::OkStatus();
}

absl::StatusOr<Endpoint> TcpEndpoint(std::string server) {
  for (const char* scheme : {"http://", "grpc://"}) {
    if (server.rfind(scheme, 0) == 0) server.erase(0, std::strlen(scheme));
  }
  if (absl::Status address = CheckAddress(server); !address.ok()) return address;
  Endpoint endpoint;
  endpoint.target = server;
  endpoint.token = Variable("NORMLAB_TOKEN");
  if (!endpoint.token.empty()) return endpoint;
  // The token of a login goes to the server that it is for, and to no other.
  const absl::StatusOr<Login> login = ReadLogin();
  if (login.ok() && login->server == server) {
    endpoint.token = login->token;
    return endpoint;
  }
  return absl::PermissionDeniedError(
      fmt::format("NORMLAB_TOKEN is not set: a server on TCP needs a token (or: normlab login {})",
                  Clean(server)));
}

bool NamesDataFolder(const std::string& option) {
  return !option.empty() || !Variable("NORMLAB_DATA_DIR").empty();
}

}  // namespace

std::filesystem::path DataDirectory(const std::string& option) {
  if (!option.empty()) return option;
  if (const std::string set = Variable("NORMLAB_DATA_DIR"); !set.empty()) return set;
  if (const std::string data = Variable("XDG_DATA_HOME"); !data.empty()) {
    return std::filesystem::path(data) / "normlab";
  }
  return std::filesystem::path(Variable("HOME")) / ".local" / "share" / "normlab";
}

std::string StartCommand(const std::filesystem::path& data_directory) {
  if (data_directory == DataDirectory("")) return "normlabd";
  return "normlabd --data-dir " + Clean(data_directory.string());
}

absl::StatusOr<Endpoint> ReadEndpointFile(const std::filesystem::path& data_directory) {
  const std::filesystem::path path = data_directory / "endpoint.json";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return NoServer(data_directory, fmt::format("there is no {}", Clean(path.string())));
  }
  if (!OursOrRoots(info.st_uid) || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} must belong to you and be closed to others; run: chmod 600 {}",
                    Clean(path.string()), Clean(path.string())));
  }
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return NoServer(data_directory, fmt::format("{} is not JSON", Clean(path.string())));
  }
  const auto text = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Endpoint endpoint;
  endpoint.socket = text("socket");
  endpoint.target = endpoint.socket.empty() ? text("grpc") : "unix:" + endpoint.socket;
  endpoint.token = text("token");
  endpoint.http = text("http");
  // A process id, and no number that is merely whole.
  if (json.contains("pid") && json["pid"].is_number_unsigned() &&
      json["pid"].get<uint64_t>() <= INT32_MAX) {
    endpoint.pid = json["pid"];
  }
  if (endpoint.target.empty()) {
    return NoServer(data_directory, fmt::format("{} names no address", Clean(path.string())));
  }
  return endpoint;
}

absl::Status CheckSocket(const std::string& socket) {
  if (socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return absl::UnavailableError(fmt::format("{} is too long for a unix socket", socket));
  }
  const std::filesystem::path folder = std::filesystem::path(socket).parent_path();
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    return absl::UnavailableError(fmt::format("there is no {}", folder.string()));
  }
  if (!S_ISDIR(info.st_mode) || !OursOrRoots(info.st_uid) || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} must be a folder that belongs to you and is closed to others; run: "
                    "chmod 700 {}",
                    folder.string(), folder.string()));
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnavailableError(std::strerror(errno));
  absl::Status status = CheckPeer(fd, socket);
  ::close(fd);
  return status;
}

absl::Status CheckAddress(const std::string& server) {
  const size_t colon = server.rfind(':');
  if (colon != std::string::npos && colon != 0 && colon + 1 != server.size()) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(fmt::format("no server: \"{}\" is not HOST:PORT", Clean(server)));
}

bool GoesOverTcp(const std::string& server_option, const std::string& data_dir_option) {
  if (!server_option.empty() || !Variable("NORMLAB_SERVER").empty()) return true;
  return !NamesDataFolder(data_dir_option) && ReadLogin().ok();
}

absl::StatusOr<Endpoint> FindEndpoint(const std::string& server_option,
                                      const std::string& data_dir_option) {
  const std::string server = server_option.empty() ? Variable("NORMLAB_SERVER") : server_option;
  if (!server.empty()) return TcpEndpoint(server);
  if (!NamesDataFolder(data_dir_option)) {
    const absl::StatusOr<Login> login = ReadLogin();
    if (login.ok()) {
      Endpoint endpoint;
      endpoint.target = login->server;
      endpoint.token = login->token;
      return endpoint;
    }
    if (!absl::IsNotFound(login.status())) return login.status();
  }
  const std::filesystem::path data_directory = DataDirectory(data_dir_option);
  absl::StatusOr<Endpoint> endpoint = ReadEndpointFile(data_directory);
  if (!endpoint.ok() || endpoint->socket.empty()) return endpoint;
  absl::Status status = CheckSocket(endpoint->socket);
  if (absl::IsUnavailable(status)) {
    return NoServer(data_directory, std::string(status.message()));
  }
  if (!status.ok()) return status;
  return endpoint;
}

}  // namespace normlab::client
