#include "server/app/users.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/base/strings.h"

namespace normlab::app {
namespace {

constexpr int kTokenBytes = 32;
constexpr int kCodeBytes = 16;
constexpr std::chrono::seconds kCodeLife(60);

std::string AccountName() {
  const passwd* account = getpwuid(geteuid());
  return account == nullptr ? StrCat("uid-", geteuid()) : std::string(account->pw_name);
}

// A token file that others can read is no secret: refuse it rather than go on with it.
absl::Status CheckClosed(const std::filesystem::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        StrCat(path.string(), " is readable by other users; delete it (a new token is made) or "
                              "close it with: chmod 600 ", path.string()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Users::OwnerToken(const std::filesystem::path& token_file) {
  absl::StatusOr<std::string> content = ReadFile(token_file);
  if (content.ok()) {
    if (absl::Status status = CheckClosed(token_file); !status.ok()) return status;
    std::string token(absl::StripAsciiWhitespace(*content));
    if (token.size() < 32) {
      return absl::FailedPreconditionError(
          StrCat(token_file.string(), " holds no token; delete it and start again"));
    }
    return token;
  }
  if (!absl::IsNotFound(content.status())) return content.status();
  std::string token = RandomHex(kTokenBytes);
  if (absl::Status status = WritePrivateFile(token_file, token + "\n"); !status.ok()) {
    return status;
  }
  return token;
}

absl::Status Users::Load(const std::filesystem::path& token_file) {
  absl::StatusOr<std::string> token = OwnerToken(token_file);
  if (!token.ok()) return token.status();
  owner_token_ = *std::move(token);
  // Only the file's present token is the owner's: one that was replaced works no longer, and
  // neither do the browsers that logged in under it.
  absl::Status status = store_.writer().Write([this](storage::WriteContext& context) {
    storage::Statement revoke = context.database.Prepared(
        "DELETE FROM tokens WHERE user_id IN (SELECT user_id FROM tokens WHERE purpose = 'owner') "
        "AND NOT EXISTS (SELECT 1 FROM tokens WHERE purpose = 'owner' AND sha256 = ?1)");
    revoke.Bind(1, Sha256Hex(owner_token_));
    if (absl::Status revoked = revoke.Run(); !revoked.ok()) return revoked;
    return context.database.Prepared("DELETE FROM tokens WHERE purpose = 'owner'").Run();
  });
  if (!status.ok()) return status;
  status = StoreToken(AccountName(), "admin", owner_token_, "owner");
  if (!status.ok()) return status;
  return store_.Read([this](storage::Database& database) {
    MutexLock lock(mutex_);
    storage::Statement select = database.Prepared(
        "SELECT tokens.sha256, users.name, users.role FROM tokens "
        "JOIN users ON users.id = tokens.user_id");
    while (select.Step()) by_digest_[select.Text(0)] = {select.Text(1), select.Text(2)};
    return select.status();
  });
}

absl::Status Users::StoreToken(const std::string& user, const std::string& role,
                               const std::string& token, const std::string& purpose) {
  return store_.writer().Write([&](storage::WriteContext& context) -> absl::Status {
    {
      storage::Statement insert = context.database.Prepared(
          "INSERT INTO users (name, role, create_time) VALUES (?1, ?2, ?3) "
          "ON CONFLICT (name) DO NOTHING");
      insert.Bind(1, user);
      insert.Bind(2, role);
      insert.Bind(3, context.wall_micros);
      if (absl::Status status = insert.Run(); !status.ok()) return status;
    }
    storage::Statement insert = context.database.Prepared(
        "INSERT INTO tokens (sha256, user_id, purpose, create_time) "
        "SELECT ?1, id, ?3, ?4 FROM users WHERE name = ?2");
    insert.Bind(1, Sha256Hex(token));
    insert.Bind(2, user);
    insert.Bind(3, purpose);
    insert.Bind(4, context.wall_micros);
    return insert.Run();
  });
}

absl::StatusOr<Principal> Users::Authenticate(std::string_view token) const {
  if (token.empty()) {
    return absl::UnauthenticatedError(
        "a token is needed: send 'Authorization: Bearer TOKEN' (the command line reads it from "
        "the data folder; a browser gets one from `normlab open`)");
  }
  // Looked up by digest: how long that takes says nothing about the token.
  const std::string digest = Sha256Hex(token);
  MutexLock lock(mutex_);
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) {
    return absl::UnauthenticatedError(
        "this token is not known here; log in again with `normlab open`, or check NORMLAB_TOKEN");
  }
  return found->second;
}

std::string Users::MakeLoginCode(const Principal& principal) {
  std::string code = RandomHex(kCodeBytes);
  MutexLock lock(mutex_);
  const auto now = clock_.Now();
  std::erase_if(codes_, [&](const auto& entry) { return entry.second.expires <= now; });
  codes_[Sha256Hex(code)] = {principal, now + kCodeLife};
  return code;
}

absl::StatusOr<Users::Login> Users::ExchangeLoginCode(const std::string& code) {
  Login login;
  {
    MutexLock lock(mutex_);
    const auto found = codes_.find(Sha256Hex(code));
    const bool good = found != codes_.end() && found->second.expires > clock_.Now();
    if (good) login.principal = found->second.principal;
    if (found != codes_.end()) codes_.erase(found);
    if (!good) {
      return absl::UnauthenticatedError(
          "this login code was used, is older than 60 s or was never given; run `normlab open` "
          "again");
    }
  }
  login.token = RandomHex(kTokenBytes);
  absl::Status status =
      StoreToken(login.principal.user, login.principal.role, login.token, "browser");
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  by_digest_[Sha256Hex(login.token)] = login.principal;
  return login;
}

}  // namespace normlab::app
