// Users, their tokens, and the login codes of browsers. Only SHA-256 of tokens is stored: they are
// long and random, and are checked on every call. Thread-safe.
#ifndef NORMLAB_SERVER_APP_USERS_H_
#define NORMLAB_SERVER_APP_USERS_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/storage/store.h"

namespace normlab::app {

class Users {
 public:
  Users(storage::Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Reads the users, and makes the owner (an admin named after the account that runs the server)
  // with the token in `token_file` (0600), which is written on the first start and kept.
  absl::Status Load(const std::filesystem::path& token_file) ABSL_LOCKS_EXCLUDED(mutex_);

  // The owner's token, for the endpoint file.
  const std::string& owner_token() const { return owner_token_; }

  // UNAUTHENTICATED, saying what to do, unless `token` is somebody's.
  absl::StatusOr<Principal> Authenticate(std::string_view token) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A code that lives 60 s and works once.
  std::string MakeLoginCode(const Principal& principal) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Login {
    std::string token;
    Principal principal;
  };
  // UNAUTHENTICATED when the code is unknown, used or too old.
  absl::StatusOr<Login> ExchangeLoginCode(const std::string& code) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::string> OwnerToken(const std::filesystem::path& token_file);
  absl::Status StoreToken(const std::string& user, const std::string& role,
                          const std::string& token, const std::string& purpose);

  struct Code {
    Principal principal;
    std::chrono::steady_clock::time_point expires;
  };

  storage::Store& store_;
  const Clock& clock_;
  std::string owner_token_;
  mutable Mutex mutex_;
  std::map<std::string, Principal> by_digest_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Code> codes_ ABSL_GUARDED_BY(mutex_);  // by the code's digest
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_USERS_H_
