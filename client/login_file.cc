#include "client/login_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/private_file.h"
#include "client/term/text.h"

namespace normlab::client {

std::filesystem::path LoginFile() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      config != nullptr && *config == '/'
          ? std::filesystem::path(config)
          : std::filesystem::path(home == nullptr ? "" : home) / ".config";
  return folder / "normlab" / "login.json";
}

absl::StatusOr<Login> ReadLogin() {
  const std::filesystem::path path = LoginFile();
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return absl::NotFoundError("not logged in anywhere");
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(fmt::format(
        "{} must belong to you and be closed to others; log in again", Clean(path.string())));
  }
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto text = [&json](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : std::string();
  };
  Login login{text("server"), text("token")};
  if (login.server.empty() || login.token.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("{} cannot be read; log in again", Clean(path.string())));
  }
  return login;
}

absl::Status WriteLogin(const Login& login) {
  const std::filesystem::path path = LoginFile();
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::FailedPreconditionError(
        fmt::format("cannot make {}: {}", path.parent_path().string(), error.message()));
  }
  const nlohmann::ordered_json json = {{"server", login.server}, {"token", login.token}};
  auto file = PrivateFile::Create(path, /*replace=*/true);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Write(json.dump(2) + "\n");
  return status.ok() ? (*file)->Commit() : status;
}

absl::StatusOr<bool> RemoveLogin() {
  std::error_code error;
  const bool removed = std::filesystem::remove(LoginFile(), error);
  if (!error) return removed;
  return absl::FailedPreconditionError(
      fmt::format("cannot remove {}: {}", LoginFile().string(), error.message()));
}

}  // namespace normlab::client
