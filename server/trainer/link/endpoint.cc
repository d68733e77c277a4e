#include "server/trainer/link/endpoint.h"

#include <sys/un.h>

#include "nlohmann/json.hpp"
#include "server/base/files.h"
#include "server/base/strings.h"

namespace normlab::trainer {
namespace {

std::string TextAt(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadTargets(const std::filesystem::path& endpoint_file) {
  const absl::StatusOr<std::string> text = ReadFile(endpoint_file);
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::DataLossError(StrCat(endpoint_file.string(), " is not a JSON object"));
  }
  const std::string socket = TextAt(json, "socket");
  const std::string address = TextAt(json, "grpc");
  std::vector<std::string> targets;
  if (!socket.empty() && socket.size() < sizeof(sockaddr_un::sun_path)) {
    targets.push_back("unix:" + socket);
  }
  // Only without a socket: a port may be anybody's by the time that a killed server's file is read,
  // and this one is about to be told a secret.
  if (targets.empty() && !address.empty()) targets.push_back(address);
  if (targets.empty()) {
    return absl::DataLossError(StrCat(endpoint_file.string(), " names neither socket nor grpc"));
  }
  return targets;
}

}  // namespace normlab::trainer
