// The server on TCP that `normlab login` noted, with a token: a 0600 file in the user's
// configuration folder, for this account on this machine.
#ifndef NORMLAB_CLIENT_LOGIN_FILE_H_
#define NORMLAB_CLIENT_LOGIN_FILE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace normlab::client {

struct Login {
  std::string server;  // HOST:PORT of gRPC
  std::string token;
};

// normlab/login.json below XDG_CONFIG_HOME, else below ~/.config.
std::filesystem::path LoginFile();

// NOT_FOUND without one; PERMISSION_DENIED when others can read it or it is another's.
absl::StatusOr<Login> ReadLogin();
// Takes the place of an earlier one.
absl::Status WriteLogin(const Login& login);
// False when there was none.
absl::StatusOr<bool> RemoveLogin();

}  // namespace normlab::client

#endif  // NORMLAB_CLIENT_LOGIN_FILE_H_
