#include "server/app/users.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/storage/audit.h"
#include "server/storage/users.h"

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
        StrCat(path.string(),
               " is readable by other users; delete it (a new token is made) or "
               "close it with: chmod 600 ",
               path.string()));
  }
  return absl::OkStatus();
}

std::string LimitText(const v1::UserLimits& limits) {
  return StrCat(limits.running(), " running, ", limits.queued(), " queued, ",
                limits.gpu_memory_bytes(), " bytes of GPU memory");
}

// What a user may do and take, for the audit.
std::string RightsText(const v1::User& user) {
  return StrCat(user.role(), "; limits: ", LimitText(user.limits()));
}

std::string DifferenceText(const v1::User& before, const v1::User& after) {
  std::string text;
  const auto add = [&text](std::string_view what, const auto& from, const auto& to) {
    if (from == to) return;
    StrAppend(&text, text.empty() ? "" : "; ", what, ": ", from, " -> ", to);
  };
  add("role", before.role(), after.role());
  add("limits.running", before.limits().running(), after.limits().running());
  add("limits.queued", before.limits().queued(), after.limits().queued());
  add("limits.gpu_memory_bytes", before.limits().gpu_memory_bytes(),
      after.limits().gpu_memory_bytes());
  return text;
}

storage::AuditLine AboutUser(std::string action, const std::string& user, std::string detail = "") {
  return {std::move(action), "", user, std::move(detail), user};
}

}  // namespace

absl::StatusOr<std::string> Users::OwnerToken() {
  absl::StatusOr<std::string> content = ReadFile(token_file_);
  if (content.ok()) {
    if (absl::Status status = CheckClosed(token_file_); !status.ok()) return status;
    std::string token(absl::StripAsciiWhitespace(*content));
    if (token.empty()) {
      return absl::FailedPreconditionError(
          StrCat(token_file_.string(), " is empty; delete it and start again"));
    }
    return token;
  }
  if (!absl::IsNotFound(content.status())) return content.status();
  std::string token = RandomHex(kTokenBytes);
  if (absl::Status status = WritePrivateFile(token_file_, token + "\n"); !status.ok()) {
    return status;
  }
  return token;
}

absl::Status Users::Load(const std::filesystem::path& token_file) {
  token_file_ = token_file;
  absl::StatusOr<std::string> token = OwnerToken();
  if (!token.ok()) return token.status();
  owner_ = AccountName();
  // Only the file's present token is the owner's: one that was replaced works no longer, and
  // neither do the browsers that logged in under it.
  const std::string digest = Sha256Hex(*token);
  absl::Status status = store_.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::DeleteReplacedOwnerTokens(context, digest);
    if (written.ok()) written = storage::PutOwner(context, owner_);
    if (written.ok()) written = storage::InsertToken(context, owner_, digest, "owner");
    return written;
  });
  if (!status.ok()) return status;
  {
    MutexLock lock(mutex_);
    owner_token_ = *std::move(token);
  }
  return ReadAll();
}

absl::Status Users::ReadAll() {
  return store_.Read([this](storage::Database& database) {
    const auto users = storage::ReadUsers(database, /*also_removed=*/false);
    if (!users.ok()) return users.status();
    const auto tokens = storage::ReadTokens(database);
    if (!tokens.ok()) return tokens.status();
    MutexLock lock(mutex_);
    for (const v1::User& user : *users) roles_[user.name()] = user.role();
    for (const storage::StoredToken& token : *tokens) sessions_[token.digest] = {token.user};
    return absl::OkStatus();
  });
}

std::string Users::owner_token() const {
  MutexLock lock(mutex_);
  return owner_token_;
}

absl::StatusOr<Principal> Users::Authenticate(std::string_view token) const {
  if (token.empty()) {
    return absl::UnauthenticatedError(
        "a token is needed: send 'Authorization: Bearer TOKEN' (the command line reads it from "
        "the data folder or from `normlab login`; a browser gets one from `normlab open`)");
  }
  // Looked up by digest: how long that takes says nothing about the token.
  const std::string digest = Sha256Hex(token);
  MutexLock lock(mutex_);
  const auto found = sessions_.find(digest);
  const auto role = found == sessions_.end() ? roles_.end() : roles_.find(found->second.user);
  if (role == roles_.end()) {
    return absl::UnauthenticatedError(
        "this token is not known here, or counts no more; log in again with `normlab open` or "
        "`normlab login`, or check NORMLAB_TOKEN");
  }
  return Principal{role->first, role->second, "", found->second.revocation};
}

void Users::Remember(const std::string& user, const std::string& role, const std::string& digest) {
  MutexLock lock(mutex_);
  if (!role.empty()) roles_[user] = role;
  if (!digest.empty()) sessions_[digest] = {user};
}

void Users::Revoke(const std::string& user) {
  std::vector<std::shared_ptr<Revocation>> revoked;
  {
    MutexLock lock(mutex_);
    std::erase_if(codes_, [&](const auto& entry) { return entry.second.user == user; });
    std::erase_if(sessions_, [&](const auto& entry) {
      if (entry.second.user != user) return false;
      revoked.push_back(entry.second.revocation);
      return true;
    });
  }
  for (const std::shared_ptr<Revocation>& revocation : revoked) revocation->Revoke();
}

absl::StatusOr<v1::CreateUserResponse> Users::Create(const Principal& who, const v1::User& user) {
  const MutexLock changing(changing_);
  v1::CreateUserResponse response;
  response.set_token(RandomHex(kTokenBytes));
  const std::string digest = Sha256Hex(response.token());
  absl::Status status = store_.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::InsertUser(context, user);
    if (written.ok()) written = storage::InsertToken(context, user.name(), digest, "user");
    if (written.ok()) {
      written = storage::WriteAudit(context, who.actor(),
                                    AboutUser("create user", user.name(), RightsText(user)));
    }
    if (!written.ok()) return written;
    absl::StatusOr<v1::User> stored = storage::ReadUser(context.database, user.name());
    if (stored.ok()) *response.mutable_user() = *std::move(stored);
    return stored.status();
  });
  if (!status.ok()) return status;
  Remember(user.name(), user.role(), digest);
  LogInfo("user made", {{"user", user.name()}, {"role", user.role()}, {"by", who.user}});
  return response;
}

absl::StatusOr<v1::User> Users::Update(const Principal& who, const std::string& name,
                                       const ChangeUser& change) {
  const MutexLock changing(changing_);
  v1::User user;
  absl::Status status = store_.writer().Write([&](storage::WriteContext& context) -> absl::Status {
    const absl::StatusOr<v1::User> before = storage::ReadUser(context.database, name);
    if (!before.ok()) return before.status();
    user = *before;
    change(user);
    if (name == owner_ && user.role() != "admin") {
      return absl::FailedPreconditionError(StrCat(name, " owns this server and stays an admin"));
    }
    if (absl::Status written = storage::WriteUser(context, user); !written.ok()) return written;
    const std::string difference = DifferenceText(*before, user);
    if (difference.empty()) return absl::OkStatus();
    return storage::WriteAudit(context, who.actor(), AboutUser("update user", name, difference));
  });
  if (!status.ok()) return status;
  Remember(name, user.role(), "");
  LogInfo("user changed", {{"user", name}, {"role", user.role()}, {"by", who.user}});
  return user;
}

absl::Status Users::Remove(const Principal& who, const std::string& name) {
  if (name == owner_) {
    return absl::FailedPreconditionError(StrCat(name, " owns this server and cannot be removed"));
  }
  const MutexLock changing(changing_);
  absl::Status status = store_.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::RemoveUser(context, name);
    if (!written.ok()) return written;
    return storage::WriteAudit(context, who.actor(), AboutUser("remove user", name));
  });
  if (!status.ok()) return status;
  {
    MutexLock lock(mutex_);
    roles_.erase(name);
  }
  Revoke(name);
  LogInfo("user removed", {{"user", name}, {"by", who.user}});
  return absl::OkStatus();
}

absl::StatusOr<std::string> Users::Rotate(const Principal& who, const std::string& name) {
  const MutexLock changing(changing_);
  const bool owner = name == owner_;
  std::string token = RandomHex(kTokenBytes);
  if (owner) {
    if (auto written = WritePrivateFile(token_file_, token + "\n"); !written.ok()) return written;
  }
  const std::string digest = Sha256Hex(token);
  const absl::Status status = store_.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::DeleteTokens(context, name);
    if (written.ok()) {
      written = storage::InsertToken(context, name, digest, owner ? "owner" : "user");
    }
    if (!written.ok()) return written;
    return storage::WriteAudit(context, who.actor(), AboutUser("rotate token", name));
  });
  if (!status.ok()) {
    // The old one goes on counting, and should the file not say so, the next start makes it the
    // new.
    if (owner) {
      if (auto back = WritePrivateFile(token_file_, owner_token() + "\n"); !back.ok()) {
        LogError("the owner's token could not be put back",
                 {{"file", token_file_.string()}, {"why", std::string(back.message())}});
      }
    }
    return status;
  }
  Revoke(name);
  Remember(name, "", digest);
  if (owner) {
    {
      MutexLock lock(mutex_);
      owner_token_ = token;
    }
    on_owner_token_();
  }
  LogInfo("token replaced", {{"user", name}, {"by", who.user}});
  return token;
}

absl::StatusOr<std::string> Users::MakeLoginCode(const Principal& principal) {
  std::string code = RandomHex(kCodeBytes);
  MutexLock lock(mutex_);
  if (principal.revocation) {
    if (absl::Status status = principal.revocation->Check(); !status.ok()) return status;
  }
  const auto now = clock_.Now();
  std::erase_if(codes_, [&](const auto& entry) { return entry.second.expires <= now; });
  codes_[Sha256Hex(code)] = {principal.user, now + kCodeLife};
  return code;
}

absl::StatusOr<std::string> Users::TakeCode(const std::string& code) {
  MutexLock lock(mutex_);
  const auto found = codes_.find(Sha256Hex(code));
  if (found != codes_.end()) {
    const Code taken = std::move(found->second);
    codes_.erase(found);
    if (taken.expires > clock_.Now()) return taken.user;
  }
  return absl::UnauthenticatedError(
      "this login code was used, is older than 60 s or was never given; run `normlab open` again");
}

absl::StatusOr<Users::Login> Users::ExchangeLoginCode(const std::string& code,
                                                      std::string_view origin) {
  const MutexLock changing(changing_);
  const absl::StatusOr<std::string> user = TakeCode(code);
  if (!user.ok()) return user.status();
  Login login{RandomHex(kTokenBytes), *user, ""};
  const std::string digest = Sha256Hex(login.token);
  absl::Status status = store_.writer().Write([&](storage::WriteContext& context) {
    absl::Status written = storage::InsertToken(context, *user, digest, "browser");
    if (!written.ok()) return written;
    return storage::WriteAudit(context, {*user, std::string(origin)}, AboutUser("log in", *user));
  });
  if (!status.ok()) return status;
  Remember(*user, "", digest);
  MutexLock lock(mutex_);
  login.role = roles_[*user];
  return login;
}

}  // namespace normlab::app
