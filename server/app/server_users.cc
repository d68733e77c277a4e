// The part of the api about users, and about who changed what.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/storage/audit.h"
#include "server/storage/users.h"

namespace normlab::app {
namespace {

using domain::FieldViolation;

constexpr size_t kLongestName = 64;
constexpr const char* kFields[] = {"role", "limits.running", "limits.queued",
                                   "limits.gpu_memory_bytes"};

absl::Status MayAdminister(const Principal& principal) {
  return MustBeAdmin(principal, "may make, change or remove users");
}

void CheckName(const std::string& name, std::vector<FieldViolation>& wrong) {
  const bool good = !name.empty() && name.size() <= kLongestName &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
                    });
  if (!good) {
    wrong.push_back({"user.name", "is 1 to 64 letters, digits, dots, underscores and hyphens"});
  }
}

void CheckRole(const std::string& role, std::vector<FieldViolation>& wrong) {
  if (role == "viewer" || role == "member" || role == "admin") return;
  wrong.push_back(
      {"user.role", StrCat("\"", role.substr(0, 64), "\" is none; use viewer, member or admin")});
}

void CheckLimit(std::string_view name, int64_t limit, std::vector<FieldViolation>& wrong) {
  if (limit >= 0) return;
  wrong.push_back({StrCat("user.limits.", name), StrCat(limit, " is negative; 0 is no limit")});
}

void CheckLimits(const v1::UserLimits& limits, std::vector<FieldViolation>& wrong) {
  CheckLimit("running", limits.running(), wrong);
  CheckLimit("queued", limits.queued(), wrong);
  CheckLimit("gpu_memory_bytes", limits.gpu_memory_bytes(), wrong);
}

// The fields that a request changes: those of its mask, or those that are set.
std::vector<std::string> FieldsOf(const v1::UpdateUserRequest& request) {
  std::vector<std::string> fields;
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "limits") {
      fields.insert(fields.end(), kFields + 1, std::end(kFields));
    } else {
      fields.push_back(path);
    }
  }
  if (!fields.empty()) return fields;
  const v1::User& user = request.user();
  if (!user.role().empty()) fields.emplace_back(kFields[0]);
  if (user.limits().running() != 0) fields.emplace_back(kFields[1]);
  if (user.limits().queued() != 0) fields.emplace_back(kFields[2]);
  if (user.limits().gpu_memory_bytes() != 0) fields.emplace_back(kFields[3]);
  return fields;
}

// Takes one of kFields over.
void Apply(const std::string& field, const v1::User& from, v1::User& user) {
  v1::UserLimits& limits = *user.mutable_limits();
  if (field == kFields[0]) user.set_role(from.role());
  if (field == kFields[1]) limits.set_running(from.limits().running());
  if (field == kFields[2]) limits.set_queued(from.limits().queued());
  if (field == kFields[3]) limits.set_gpu_memory_bytes(from.limits().gpu_memory_bytes());
}

absl::StatusOr<int64_t> AuditPage(const std::string& token) {
  if (token.empty()) return 0;
  int64_t id = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, id);
  if (error == std::errc() && stop == end && id > 0) return id;
  return domain::InvalidFields({{"page_token", "is not one that this server gave"}});
}

}  // namespace

absl::StatusOr<Principal> ServerApi::Authenticate(std::string_view token, std::string_view origin) {
  absl::StatusOr<Principal> principal = parts_.users.Authenticate(token);
  if (principal.ok()) {
    principal->origin = std::string(origin);
  } else {
    failed_logins_.Note(origin);
  }
  return principal;
}

absl::StatusOr<v1::User> ServerApi::GetMe(const Principal& principal) {
  absl::StatusOr<v1::User> user;
  const absl::Status status = parts_.store.Read([&](storage::Database& database) {
    user = storage::ReadUser(database, principal.user);
    return user.status();
  });
  if (!status.ok()) return status;
  return user;
}

absl::StatusOr<v1::CreateLoginCodeResponse> ServerApi::CreateLoginCode(const Principal& principal) {
  absl::StatusOr<std::string> code = parts_.users.MakeLoginCode(principal);
  if (!code.ok()) return code.status();
  v1::CreateLoginCodeResponse response;
  response.set_code(*std::move(code));
  // In the fragment, which browsers never send to any server.
  response.set_url(StrCat(dashboard_url_, "/#code=", response.code()));
  return response;
}

absl::StatusOr<v1::ExchangeLoginCodeResponse> ServerApi::ExchangeLoginCode(
    const v1::ExchangeLoginCodeRequest& request, std::string_view origin) {
  absl::StatusOr<Users::Login> login = parts_.users.ExchangeLoginCode(request.code(), origin);
  if (absl::IsUnauthenticated(login.status())) failed_logins_.Note(origin);
  if (!login.ok()) return login.status();
  v1::ExchangeLoginCodeResponse response;
  response.set_token(login->token);
  response.mutable_user()->set_name(login->user);
  response.mutable_user()->set_role(login->role);
  return response;
}

absl::StatusOr<v1::ListUsersResponse> ServerApi::ListUsers(const Principal& principal,
                                                           const v1::ListUsersRequest& request) {
  v1::ListUsersResponse response;
  const absl::Status status = parts_.store.Read([&](storage::Database& database) {
    absl::StatusOr<std::vector<v1::User>> users =
        storage::ReadUsers(database, request.show_removed());
    if (!users.ok()) return users.status();
    for (v1::User& user : *users) {
      const bool shown = principal.role == "admin" || user.name() == principal.user;
      if (shown) *response.add_users() = std::move(user);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::CreateUserResponse> ServerApi::CreateUser(const Principal& principal,
                                                             const v1::CreateUserRequest& request) {
  if (absl::Status status = MayAdminister(principal); !status.ok()) return status;
  std::vector<FieldViolation> wrong;
  CheckName(request.user().name(), wrong);
  CheckRole(request.user().role(), wrong);
  CheckLimits(request.user().limits(), wrong);
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  return parts_.users.Create(principal, request.user());
}

absl::StatusOr<v1::User> ServerApi::UpdateUser(const Principal& principal,
                                               const v1::UpdateUserRequest& request) {
  if (absl::Status status = MayAdminister(principal); !status.ok()) return status;
  std::vector<FieldViolation> wrong;
  const std::vector<std::string> fields = FieldsOf(request);
  if (fields.empty()) wrong.push_back({"update_mask", "names nothing to change"});
  for (const std::string& field : fields) {
    if (std::find(std::begin(kFields), std::end(kFields), field) == std::end(kFields)) {
      wrong.push_back({"update_mask", StrCat("\"", field.substr(0, 64),
                                             "\" cannot be changed; role, limits.running, "
                                             "limits.queued and limits.gpu_memory_bytes can")});
    }
    if (field == kFields[0]) CheckRole(request.user().role(), wrong);
  }
  CheckLimits(request.user().limits(), wrong);
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  absl::StatusOr<v1::User> user =
      parts_.users.Update(principal, request.user().name(), [&](v1::User& changed) {
        for (const std::string& field : fields) Apply(field, request.user(), changed);
      });
  if (user.ok()) parts_.dispatcher.Wake();  // higher limits may let a run start
  return user;
}

absl::Status ServerApi::DeleteUser(const Principal& principal,
                                   const v1::DeleteUserRequest& request) {
  if (absl::Status status = MayAdminister(principal); !status.ok()) return status;
  return parts_.users.Remove(principal, request.name());
}

absl::StatusOr<v1::RotateTokenResponse> ServerApi::RotateToken(
    const Principal& principal, const v1::RotateTokenRequest& request) {
  const std::string& name = request.name().empty() ? principal.user : request.name();
  if (name != principal.user) {
    if (absl::Status status = MayAdminister(principal); !status.ok()) return status;
  }
  absl::StatusOr<std::string> token = parts_.users.Rotate(principal, name);
  if (!token.ok()) return token.status();
  v1::RotateTokenResponse response;
  response.set_token(*std::move(token));
  return response;
}

absl::StatusOr<v1::ListAuditEventsResponse> ServerApi::ListAuditEvents(
    const Principal& principal, const v1::ListAuditEventsRequest& request) {
  const absl::StatusOr<int> page = PageSize(request.page_size());
  if (!page.ok()) return page.status();
  const absl::StatusOr<int64_t> before = AuditPage(request.page_token());
  if (!before.ok()) return before.status();
  storage::AuditQuery query;
  query.run = request.run();
  query.user = request.user();
  if (principal.role != "admin") query.reader = principal.user;
  query.before = *before;
  query.limit = *page + 1;
  v1::ListAuditEventsResponse response;
  const absl::Status status = parts_.store.Read([&](storage::Database& database) {
    absl::StatusOr<std::vector<v1::AuditEvent>> events = storage::ReadAudit(database, query);
    if (!events.ok()) return events.status();
    if (events->size() > static_cast<size_t>(*page)) {
      events->pop_back();
      response.set_next_page_token(StrCat(events->back().id()));
    }
    for (v1::AuditEvent& event : *events) *response.add_events() = std::move(event);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace normlab::app
