// Who changed what. A line is written in the transaction of the change it tells of: there is never
// one without the other. Lines are kept for good, also those of runs that were deleted since.
#ifndef NORMLAB_SERVER_STORAGE_AUDIT_H_
#define NORMLAB_SERVER_STORAGE_AUDIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/user_service.pb.h"
#include "server/domain/actor.h"
#include "server/storage/sqlite.h"
#include "server/storage/writer.h"

namespace normlab::storage {

struct AuditLine {
  std::string action;        // what was done: create, cancel, ...
  std::string run = {};      // to which run, if to one
  std::string subject = {};  // to which experiment, user or device, if to one
  std::string detail = {};   // for people; what is longer than kLongestAuditDetail is cut
  // Whose it is, and who may therefore read of it. Empty: the user of the run or the experiment,
  // which must be in the database just then.
  std::string owner = {};
};

constexpr size_t kLongestAuditDetail = 500;  // bytes

// On the writer's thread.
absl::Status WriteAudit(WriteContext& context, const domain::Actor& who, const AuditLine& line);

struct AuditQuery {
  std::string run;     // only of this run
  std::string user;    // only what this user did
  std::string reader;  // only what this user did or what is theirs; empty: everything
  int64_t before = 0;  // only lines with smaller ids; 0: from the newest
  int limit = 50;
};

// Newest first.
absl::StatusOr<std::vector<v1::AuditEvent>> ReadAudit(Database& database, const AuditQuery& query);

// "from -> to" with both in quotes and shortened, for `detail`.
std::string ChangeText(std::string_view what, std::string_view from, std::string_view to);

}  // namespace normlab::storage

#endif  // NORMLAB_SERVER_STORAGE_AUDIT_H_
