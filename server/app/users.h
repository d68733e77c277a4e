// Users, their tokens, and the login codes of browsers. Only SHA-256 of tokens is stored: they are
// long and random, and are checked on every call. What takes a token away takes it away everywhere
// before it returns: from the next call on any connection, from open watches, from browsers that
// logged in. Thread-safe.
#ifndef NORMLAB_SERVER_APP_USERS_H_
#define NORMLAB_SERVER_APP_USERS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
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

  // The owner's token, for the endpoint file; and what is done when it is replaced. Set before the
  // first call.
  std::string owner_token() const ABSL_LOCKS_EXCLUDED(mutex_);
  void OnOwnerToken(std::function<void()> changed) { on_owner_token_ = std::move(changed); }

  // UNAUTHENTICATED, saying what to do, unless `token` is somebody's.
  absl::StatusOr<Principal> Authenticate(std::string_view token) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The following change users; who may ask for it, the caller has checked. Each is in the audit.

  // Makes a user and a token. ALREADY_EXISTS for a name in use; one that was removed becomes active
  // again, with what is given here.
  absl::StatusOr<v1::CreateUserResponse> Create(const Principal& who, const v1::User& user);
  // Role and limits become those of `user`. NOT_FOUND for nobody; FAILED_PRECONDITION if the owner
  // would be no admin. The owner always is one, so there is always an admin.
  using ChangeUser = std::function<void(v1::User&)>;
  absl::StatusOr<v1::User> Update(const Principal& who, const std::string& name,
                                  const ChangeUser& change);
  absl::Status Remove(const Principal& who, const std::string& name);
  // A new token; all others of the user, and login codes, count no more. The owner's is also
  // written to the token file, first: a server that dies meanwhile goes on with that one.
  absl::StatusOr<std::string> Rotate(const Principal& who, const std::string& name);

  // A code that lives 60 s and works once. UNAUTHENTICATED when the caller's token was revoked.
  absl::StatusOr<std::string> MakeLoginCode(const Principal& principal) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Login {
    std::string token;
    std::string user;
    std::string role;
  };
  // UNAUTHENTICATED when the code is unknown, used or too old.
  absl::StatusOr<Login> ExchangeLoginCode(const std::string& code, std::string_view origin)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Session {
    std::string user;
    std::shared_ptr<Revocation> revocation = std::make_shared<Revocation>();
  };
  struct Code {
    std::string user;
    std::chrono::steady_clock::time_point expires;
  };

  absl::StatusOr<std::string> OwnerToken();
  absl::Status ReadAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // A role or a token that was stored, for Authenticate.
  void Remember(const std::string& user, const std::string& role, const std::string& digest)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all that goes on by the user's tokens and codes.
  void Revoke(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> TakeCode(const std::string& code) ABSL_LOCKS_EXCLUDED(mutex_);

  storage::Store& store_;
  const Clock& clock_;
  std::filesystem::path token_file_;
  std::string owner_;  // name; set by Load
  std::function<void()> on_owner_token_ = [] {};

  // Held over a change and its commit: memory and database change in one order, and no browser gets
  // a token between the removal of a user's tokens and that of the user's codes. Before mutex_.
  Mutex changing_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  std::string owner_token_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);   // by the token's digest
  std::map<std::string, std::string> roles_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, Code> codes_ ABSL_GUARDED_BY(mutex_);         // by the code's digest
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_USERS_H_
