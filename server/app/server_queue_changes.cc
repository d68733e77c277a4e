// The part of the api that changes runs in the queue: hold, release, move, and what UpdateRun says
// about priority and `after`.
#include <string>
#include <utility>

#include "server/app/requests.h"
#include "server/app/server_api.h"
#include "server/app/submit_checks.h"
#include "server/base/log.h"
#include "server/base/strings.h"
#include "server/domain/priority.h"
#include "server/storage/audit.h"
#include "server/storage/experiments.h"
#include "server/storage/queue_changes.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

using storage::Place;
using storage::WriteContext;

std::string Flag(bool value) { return value ? "true" : "false"; }

absl::StatusOr<Place> PlaceOf(const v1::MoveRunRequest& request) {
  using Request = v1::MoveRunRequest;
  const auto not_an_id = [](std::string_view field, const std::string& id) {
    return domain::InvalidFields(
        {{std::string(field), StrCat("there is no run \"", id.substr(0, 64), "\"; give an id")}});
  };
  switch (request.place_case()) {
    case Request::kFirst:
      if (request.first()) return Place{Place::Kind::kFirst};
      return domain::InvalidFields({{"first", "can only be true; or give last, before, behind"}});
    case Request::kLast:
      if (request.last()) return Place{Place::Kind::kLast};
      return domain::InvalidFields({{"last", "can only be true; or give first, before, behind"}});
    case Request::kBefore:
      if (!IsUlid(request.before())) return not_an_id("before", request.before());
      return Place{Place::Kind::kBefore, request.before()};
    case Request::kBehind:
      if (!IsUlid(request.behind())) return not_an_id("behind", request.behind());
      return Place{Place::Kind::kBehind, request.behind()};
    case Request::PLACE_NOT_SET:
      break;
  }
  return domain::InvalidFields({{"place", "is missing; give one of first, last, before, behind"}});
}

}  // namespace

// What calls that change a queued run have in common. The dispatcher looks again afterwards: the
// run, or one behind it, may be startable now.
absl::StatusOr<v1::Run> ServerApi::ChangeQueued(
    const Principal& principal, const std::string& id, std::string_view what,
    const std::function<absl::Status(WriteContext&, std::string& detail)>& change) {
  if (absl::Status status = CheckId("id", id); !status.ok()) return status;
  if (absl::Status status = CheckOwner(principal, id); !status.ok()) return status;
  absl::StatusOr<v1::Run> changed;
  absl::Status status = parts_.store.writer().Write([&](WriteContext& context) {
    std::string detail;
    absl::Status written = change(context, detail);
    if (written.ok() && !detail.empty()) {
      written = storage::WriteAudit(context, principal.actor(),
                                    {.action = std::string(what), .run = id, .detail = detail});
    }
    if (!written.ok()) return written;
    changed = storage::ReadRun(context.database, id);
    return changed.status();
  });
  if (!status.ok()) return status;
  LogInfo("queue changed", {{"run", id}, {"by", principal.user}, {"what", std::string(what)}});
  parts_.dispatcher.Wake();
  Complete(*changed);
  return changed;
}

absl::StatusOr<v1::Run> ServerApi::SetHeld(const Principal& principal, const std::string& id,
                                           std::string_view what,
                                           const storage::QueueChange& change) {
  return ChangeQueued(principal, id, what, [&](WriteContext& context, std::string& detail) {
    const absl::StatusOr<v1::Run> before = storage::ReadRun(context.database, id);
    if (!before.ok()) return before.status();
    if (before->held() != *change.held) {
      detail = storage::ChangeText("held", Flag(before->held()), Flag(*change.held));
    }
    return storage::ChangeQueued(context, id, change);
  });
}

absl::StatusOr<v1::Run> ServerApi::HoldRun(const Principal& principal,
                                           const v1::HoldRunRequest& request) {
  return SetHeld(principal, request.id(), "hold",
                 {.held = true, .wait_reason = StrCat("held by ", principal.user)});
}

absl::StatusOr<v1::Run> ServerApi::ReleaseRun(const Principal& principal,
                                              const v1::ReleaseRunRequest& request) {
  return SetHeld(principal, request.id(), "release", {.held = false});
}

absl::StatusOr<v1::Run> ServerApi::MoveRun(const Principal& principal,
                                           const v1::MoveRunRequest& request) {
  if (absl::Status status = CheckId("id", request.id()); !status.ok()) return status;
  const absl::StatusOr<Place> place = PlaceOf(request);
  if (!place.ok()) return place.status();
  return ChangeQueued(
      principal, request.id(), "move", [&](WriteContext& context, std::string& detail) {
        storage::Moved moved;
        const absl::Status status = storage::MoveQueued(context, request.id(), *place, &moved);
        if (status.ok() && moved.from != moved.to) {
          detail = StrCat(storage::ChangeText("place", StrCat(moved.from), StrCat(moved.to)),
                          " of ", moved.of);
        }
        return status;
      });
}

absl::StatusOr<v1::Experiment> ServerApi::CancelExperiment(
    const Principal& principal, const v1::CancelExperimentRequest& request) {
  if (absl::Status status = CheckId("experiment", request.id()); !status.ok()) return status;
  if (absl::Status status = MayChange(principal); !status.ok()) return status;
  absl::Status status = parts_.dispatcher.CancelExperiment(
      request.id(), principal.actor(), /*everybodys=*/principal.role == "admin");
  if (!status.ok()) return status;
  v1::GetExperimentRequest get;
  get.set_id(request.id());
  return GetExperiment(principal, get);
}

void ServerApi::CheckQueueFields(const v1::Run& wanted, const std::string& prefix,
                                 std::vector<domain::FieldViolation>& wrong) {
  std::vector<domain::FieldViolation> found = CheckPriority(prefix + "priority", wanted.priority());
  wrong.insert(wrong.end(), found.begin(), found.end());
  if (wanted.after().empty()) return;
  const absl::Status read = parts_.store.Read([&](storage::Database& database) {
    auto checked = storage::CheckDependencies(database, "", prefix, wanted.after());
    if (checked.ok()) wrong.insert(wrong.end(), checked->begin(), checked->end());
    return checked.status();
  });
  // The transaction that stores the run looks again, and fails then.
  if (!read.ok()) LogWarning("dependencies not read", {{"error", std::string(read.message())}});
}

absl::Status ServerApi::CheckQueueWords(storage::Database& database,
                                        const std::vector<v1::Run>& runs,
                                        const std::function<std::string(size_t)>& prefix) {
  if (runs.empty()) return absl::OkStatus();
  std::vector<domain::FieldViolation> wrong;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto found = storage::CheckDependencies(database, "", prefix(i), runs[i].after());
    if (!found.ok()) return found.status();
    wrong.insert(wrong.end(), found->begin(), found->end());
  }
  if (!wrong.empty()) return domain::InvalidFields(wrong);
  return storage::CheckQueueLimit(database, runs.front().user(), static_cast<int64_t>(runs.size()));
}

absl::Status ServerApi::CheckQueueLimitOf(const std::string& run) {
  return parts_.store.Read([&](storage::Database& database) -> absl::Status {
    const absl::StatusOr<v1::Run> read = storage::ReadRun(database, run);
    if (!read.ok()) return read.status();
    return storage::CheckQueueLimit(database, read->user(), 1);
  });
}

}  // namespace normlab::app
