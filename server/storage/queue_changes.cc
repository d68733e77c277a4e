#include "server/storage/queue_changes.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "server/base/strings.h"
#include "server/domain/priority.h"
#include "server/domain/run_state.h"
#include "server/storage/runs.h"

namespace normlab::storage {
namespace {

// As a number in the text: the index runs_in_queue has these alone.
#define NORMLAB_QUEUED "state = 1"
static_assert(v1::Run::STATE_QUEUED == 1);

// The run, if it is QUEUED.
absl::StatusOr<v1::Run> ReadQueued(Database& database, const std::string& id) {
  absl::StatusOr<v1::Run> run = ReadRun(database, id);
  if (!run.ok() || run->state() == v1::Run::STATE_QUEUED) return run;
  return absl::FailedPreconditionError(StrCat("run ", id, " is ", domain::StateWord(run->state()),
                                              "; only a queued run has a place in the queue"));
}

// Notes the change, so that watchers who come back later see it too, and publishes the run.
absl::Status PublishChanged(WriteContext& context, const std::string& run) {
  {
    Statement touch =
        context.database.Prepared("UPDATE runs SET changed_sequence = ?2 WHERE id = ?1");
    touch.Bind(1, run);
    touch.Bind(2, static_cast<int64_t>(context.sequence));
    if (absl::Status status = touch.Run(); !status.ok()) return status;
  }
  absl::StatusOr<v1::Run> changed = ReadRun(context.database, run);
  if (!changed.ok()) return changed.status();
  v1::WatchRunsResponse snapshot;
  *snapshot.mutable_run() = *std::move(changed);
  context.Publish(run, std::move(snapshot));
  return absl::OkStatus();
}

absl::Status WriteHeld(Database& database, const std::string& run, bool held,
                       const std::string& wait_reason) {
  Statement update = database.Prepared("UPDATE runs SET held = ?2, wait_reason = ?3 WHERE id = ?1");
  update.Bind(1, run);
  update.Bind(2, int64_t{held});
  update.Bind(3, wait_reason);
  return update.Run();
}

// In a new class a run stands where its age puts it.
absl::Status WritePriority(Database& database, const std::string& run, int priority) {
  Statement update =
      database.Prepared("UPDATE runs SET priority = ?2, queue_rank = 0 WHERE id = ?1");
  update.Bind(1, run);
  update.Bind(2, int64_t{priority});
  return update.Run();
}

// A queued run among those of its user and class, which stand in the order of (rank, id). New runs
// have rank 0 and the highest id: no rank is above 0, so that they come last.
struct Ranked {
  std::string id;
  int64_t rank = 0;
};

absl::StatusOr<std::vector<Ranked>> ReadPeers(Database& database, const v1::Run& run) {
  Statement select =
      database.Prepared("SELECT id, queue_rank FROM runs WHERE " NORMLAB_QUEUED
                        " AND user_name = ?1 AND priority = ?2 ORDER BY queue_rank, id");
  select.Bind(1, run.user());
  select.Bind(2, int64_t{domain::PriorityNumber(run.priority()).value_or(0)});
  std::vector<Ranked> peers;
  while (select.Step()) peers.push_back({select.Text(0), select.Integer(1)});
  if (!select.status().ok()) return select.status();
  return peers;
}

absl::Status CheckOther(Database& database, const v1::Run& run, const std::string& other_id) {
  if (other_id == run.id()) {
    return absl::FailedPreconditionError(StrCat("run ", other_id, " cannot move past itself"));
  }
  const absl::StatusOr<v1::Run> other = ReadQueued(database, other_id);
  if (!other.ok()) return other.status();
  if (other->user() != run.user()) {
    return absl::FailedPreconditionError(StrCat("run ", other_id, " belongs to ", other->user(),
                                                " and run ", run.id(), " to ", run.user(),
                                                "; a run moves among those of its own user"));
  }
  if (other->priority() != run.priority()) {
    return absl::FailedPreconditionError(StrCat("run ", other_id, " has priority ",
                                                other->priority(), " and run ", run.id(), " ",
                                                run.priority(), "; give them the same first"));
  }
  return absl::OkStatus();
}

// From 1.
int64_t PlaceIn(const std::vector<Ranked>& peers, const std::string& run) {
  return std::ranges::find(peers, run, &Ranked::id) - peers.begin() + 1;
}

// Takes `run` out of `peers` and puts it where it is to go.
void Put(std::vector<Ranked>& peers, const std::string& run, const Place& place) {
  const auto old = std::ranges::find(peers, run, &Ranked::id);
  Ranked moved = std::move(*old);
  peers.erase(old);
  auto where = peers.begin();
  if (place.kind == Place::Kind::kLast) {
    where = peers.end();
  } else if (place.kind != Place::Kind::kFirst) {
    where = std::ranges::find(peers, place.other, &Ranked::id);
    if (place.kind == Place::Kind::kBehind) ++where;
  }
  peers.insert(where, std::move(moved));
}

// Gives the runs ranks in which they stand as they do in `peers`, and writes those that changed.
absl::Status WriteRanks(Database& database, std::vector<Ranked>& peers) {
  Statement update = database.Prepared("UPDATE runs SET queue_rank = ?2 WHERE id = ?1");
  for (size_t i = peers.size() - 1; i > 0; --i) {
    const Ranked& next = peers[i];
    Ranked& run = peers[i - 1];
    if (std::tie(run.rank, run.id) < std::tie(next.rank, next.id)) continue;
    run.rank = run.id < next.id ? next.rank : next.rank - 1;
    update.Reset();
    update.Bind(1, run.id);
    update.Bind(2, run.rank);
    if (absl::Status status = update.Run(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChangeQueued(WriteContext& context, const std::string& id, const QueueChange& change) {
  Database& database = context.database;
  const absl::StatusOr<v1::Run> run = ReadQueued(database, id);
  if (!run.ok()) return run.status();
  absl::Status written;
  if (change.held && *change.held != run->held()) {
    written = WriteHeld(database, id, *change.held, change.wait_reason);
  }
  const bool new_class =
      change.priority && domain::PriorityName(*change.priority) != run->priority();
  if (written.ok() && new_class) written = WritePriority(database, id, *change.priority);
  if (written.ok() && change.after) {
    const auto wrong = CheckDependencies(database, id, "", *change.after);
    if (!wrong.ok()) return wrong.status();
    if (!wrong->empty()) return domain::InvalidFields(*wrong);
    written = WriteDependencies(database, id, *change.after);
  }
  return written.ok() ? PublishChanged(context, id) : written;
}

absl::Status MoveQueued(WriteContext& context, const std::string& id, const Place& place,
                        Moved* moved) {
  Database& database = context.database;
  const absl::StatusOr<v1::Run> run = ReadQueued(database, id);
  if (!run.ok()) return run.status();
  if (place.kind == Place::Kind::kBefore || place.kind == Place::Kind::kBehind) {
    if (auto status = CheckOther(database, *run, place.other); !status.ok()) return status;
  }
  absl::StatusOr<std::vector<Ranked>> peers = ReadPeers(database, *run);
  if (!peers.ok()) return peers.status();
  const int64_t from = PlaceIn(*peers, id);
  Put(*peers, id, place);
  if (moved != nullptr) {
    *moved = {from, PlaceIn(*peers, id), static_cast<int64_t>(peers->size())};
  }
  if (absl::Status status = WriteRanks(database, *peers); !status.ok()) return status;
  return PublishChanged(context, id);
}

absl::Status CheckQueueLimit(Database& database, const std::string& user, int64_t more) {
  int64_t limit = 0;
  {
    Statement select = database.Prepared("SELECT max_queued FROM users WHERE name = ?1");
    select.Bind(1, user);
    if (select.Step()) limit = select.Integer(0);
    if (!select.status().ok()) return select.status();
  }
  if (limit == 0) return absl::OkStatus();
  Statement count =
      database.Prepared("SELECT count(*) FROM runs WHERE " NORMLAB_QUEUED " AND user_name = ?1");
  count.Bind(1, user);
  if (!count.Step()) return count.status();
  const int64_t queued = count.Integer(0);
  if (queued + more <= limit) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(user, " has ", queued, " runs in the queue and wants ", more, " more; the limit is ",
             limit, ". Wait for some, cancel some, or ask an admin for a higher limit"));
}

}  // namespace normlab::storage
