#include "server/storage/users.h"

#include <google/protobuf/util/time_util.h>

#include "server/base/strings.h"

namespace normlab::storage {
namespace {

#define NORMLAB_USER_COLUMNS \
  "name, role, create_time, max_running, max_queued, max_gpu_memory_bytes, remove_time"

v1::User UserOf(const Statement& row) {
  v1::User user;
  user.set_name(row.Text(0));
  user.set_role(row.Text(1));
  *user.mutable_create_time() =
      google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(row.Integer(2));
  v1::UserLimits& limits = *user.mutable_limits();
  limits.set_running(row.Integer(3));
  limits.set_queued(row.Integer(4));
  limits.set_gpu_memory_bytes(row.Integer(5));
  user.set_removed(!row.IsNull(6));
  return user;
}

absl::Status NoUser(std::string_view name) {
  return absl::NotFoundError(StrCat("there is no user ", name));
}

// OK unless `name` is nobody, or was removed.
absl::Status CheckUser(Database& database, std::string_view name) {
  const absl::StatusOr<v1::User> user = ReadUser(database, name);
  if (user.ok() && user->removed()) return NoUser(name);
  return user.status();
}

void BindRights(Statement& statement, const v1::User& user) {
  statement.Bind(1, user.name());
  statement.Bind(2, user.role());
  statement.Bind(3, user.limits().running());
  statement.Bind(4, user.limits().queued());
  statement.Bind(5, user.limits().gpu_memory_bytes());
}

}  // namespace

absl::StatusOr<std::vector<v1::User>> ReadUsers(Database& database, bool also_removed) {
  Statement select = database.Prepared("SELECT " NORMLAB_USER_COLUMNS
                                       " FROM users WHERE ?1 OR remove_time IS NULL ORDER BY name");
  select.Bind(1, int64_t{also_removed});
  std::vector<v1::User> users;
  while (select.Step()) users.push_back(UserOf(select));
  if (!select.status().ok()) return select.status();
  return users;
}

absl::StatusOr<v1::User> ReadUser(Database& database, std::string_view name) {
  Statement select =
      database.Prepared("SELECT " NORMLAB_USER_COLUMNS " FROM users WHERE name = ?1");
  select.Bind(1, name);
  if (select.Step()) return UserOf(select);
  if (!select.status().ok()) return select.status();
  return NoUser(name);
}

absl::Status InsertUser(WriteContext& context, const v1::User& user) {
  if (CheckUser(context.database, user.name()).ok()) {
    return absl::AlreadyExistsError(StrCat("there is a user ", user.name(), " already"));
  }
  Statement insert = context.database.Prepared(
      "INSERT INTO users (name, role, max_running, max_queued, max_gpu_memory_bytes, create_time) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET role = excluded.role, "
      "max_running = excluded.max_running, max_queued = excluded.max_queued, "
      "max_gpu_memory_bytes = excluded.max_gpu_memory_bytes, remove_time = NULL");
  BindRights(insert, user);
  insert.Bind(6, context.wall_micros);
  return insert.Run();
}

absl::Status WriteUser(WriteContext& context, const v1::User& user) {
  if (absl::Status found = CheckUser(context.database, user.name()); !found.ok()) return found;
  Statement update = context.database.Prepared(
      "UPDATE users SET role = ?2, max_running = ?3, max_queued = ?4, max_gpu_memory_bytes = ?5 "
      "WHERE name = ?1");
  BindRights(update, user);
  return update.Run();
}

absl::Status RemoveUser(WriteContext& context, std::string_view name) {
  if (absl::Status found = CheckUser(context.database, name); !found.ok()) return found;
  {
    Statement update =
        context.database.Prepared("UPDATE users SET remove_time = ?2 WHERE name = ?1");
    update.Bind(1, name);
    update.Bind(2, context.wall_micros);
    if (absl::Status status = update.Run(); !status.ok()) return status;
  }
  return DeleteTokens(context, name);
}

absl::Status PutOwner(WriteContext& context, std::string_view name) {
  Statement insert = context.database.Prepared(
      "INSERT INTO users (name, role, create_time) VALUES (?1, 'admin', ?2) "
      "ON CONFLICT (name) DO UPDATE SET role = 'admin', remove_time = NULL");
  insert.Bind(1, name);
  insert.Bind(2, context.wall_micros);
  return insert.Run();
}

absl::Status InsertToken(WriteContext& context, std::string_view user, std::string_view digest,
                         std::string_view purpose) {
  if (absl::Status found = CheckUser(context.database, user); !found.ok()) return found;
  Statement insert = context.database.Prepared(
      "INSERT INTO tokens (sha256, user_id, purpose, create_time) "
      "SELECT ?1, id, ?3, ?4 FROM users WHERE name = ?2");
  insert.Bind(1, digest);
  insert.Bind(2, user);
  insert.Bind(3, purpose);
  insert.Bind(4, context.wall_micros);
  return insert.Run();
}

absl::Status DeleteTokens(WriteContext& context, std::string_view user) {
  Statement erase = context.database.Prepared(
      "DELETE FROM tokens WHERE user_id = (SELECT id FROM users WHERE name = ?1)");
  erase.Bind(1, user);
  return erase.Run();
}

absl::Status DeleteReplacedOwnerTokens(WriteContext& context, std::string_view digest) {
  {
    Statement revoke = context.database.Prepared(
        "DELETE FROM tokens WHERE user_id IN (SELECT user_id FROM tokens WHERE purpose = 'owner') "
        "AND NOT EXISTS (SELECT 1 FROM tokens WHERE purpose = 'owner' AND sha256 = ?1)");
    revoke.Bind(1, digest);
    if (absl::Status status = revoke.Run(); !status.ok()) return status;
  }
  return context.database.Prepared("DELETE FROM tokens WHERE purpose = 'owner'").Run();
}

absl::StatusOr<std::vector<StoredToken>> ReadTokens(Database& database) {
  Statement select = database.Prepared(
      "SELECT tokens.sha256, users.name FROM tokens JOIN users ON users.id = tokens.user_id");
  std::vector<StoredToken> tokens;
  while (select.Step()) tokens.push_back({select.Text(0), select.Text(1)});
  if (!select.status().ok()) return select.status();
  return tokens;
}

}  // namespace normlab::storage
