// Users and the digests of their tokens. On the writer's thread where there is a WriteContext.
#ifndef NORMLAB_SERVER_STORAGE_USERS_H_
#define NORMLAB_SERVER_STORAGE_USERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/user_service.pb.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

// By name.
absl::StatusOr<std::vector<v1::User>> ReadUsers(Database& database, bool also_removed);

// Also one that was removed. NOT_FOUND when there never was one.
absl::StatusOr<v1::User> ReadUser(Database& database, std::string_view name);

// Makes a user, or makes one again that was removed: the name's history is then the new user's.
// ALREADY_EXISTS for a name that is in use.
absl::Status InsertUser(WriteContext& context, const v1::User& user);

// Writes role and limits. NOT_FOUND unless there is such a user, not removed.
absl::Status WriteUser(WriteContext& context, const v1::User& user);

// Marks the user as removed and takes all tokens away. NOT_FOUND as above.
absl::Status RemoveUser(WriteContext& context, std::string_view name);

// An admin by that name, whatever was there before: the owner of the data folder.
absl::Status PutOwner(WriteContext& context, std::string_view name);

// purpose: owner, user or browser. NOT_FOUND as above.
absl::Status InsertToken(WriteContext& context, std::string_view user, std::string_view digest,
                         std::string_view purpose);
absl::Status DeleteTokens(WriteContext& context, std::string_view user);
// Takes all tokens of owners away whose file has another token than that of `digest` now.
absl::Status DeleteReplacedOwnerTokens(WriteContext& context, std::string_view digest);

struct StoredToken {
  std::string digest;
  std::string user;
};
absl::StatusOr<std::vector<StoredToken>> ReadTokens(Database& database);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_USERS_H_
