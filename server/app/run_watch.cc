#include "server/app/run_watch.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/run_state.h"
#include "server/storage/run_deletion.h"
#include "server/storage/runs.h"

namespace normlab::app {
namespace {

// Points. Each of many watchers that join at once, or stall, holds a page: 130 KiB of numbers.
constexpr int64_t kHistoryPage = 8'192;
constexpr size_t kLivePage = 512;     // events of a run
constexpr size_t kEnoughEvents = 64;  // of histories in one answer
constexpr int kLobbyFirst = 200;      // runs shown to one who just came
constexpr int kLobbyPage = 200;       // runs of a read, shown to one who comes back

using domain::Event;
using domain::EventPtr;
using storage::Database;

void Emit(uint64_t sequence, const std::string& run, v1::WatchRunsResponse message,
          std::vector<WatchedEvent>& out) {
  out.push_back({std::make_shared<Event>(sequence, run, std::move(message)), ""});
}

void EmitRun(uint64_t sequence, const v1::Run& run, std::vector<WatchedEvent>& out) {
  v1::WatchRunsResponse message;
  *message.mutable_run() = run;
  Emit(sequence, run.id(), std::move(message), out);
}

void EmitEnd(uint64_t sequence, const v1::Run& run, std::vector<WatchedEvent>& out) {
  v1::WatchRunsResponse message;
  *message.mutable_end()->mutable_run() = run;
  Emit(sequence, run.id(), std::move(message), out);
}

void EmitDeleted(uint64_t sequence, const std::string& run, std::vector<WatchedEvent>& out) {
  v1::WatchRunsResponse message;
  message.mutable_deleted()->set_run(run);
  Emit(sequence, run, std::move(message), out);
}

absl::StatusOr<uint64_t> ChangedSequence(Database& database, const std::string& run) {
  storage::Statement select = database.Prepared("SELECT changed_sequence FROM runs WHERE id = ?1");
  select.Bind(1, run);
  if (!select.Step()) {
    return select.status().ok() ? absl::NotFoundError(StrCat("there is no run ", run))
                                : select.status();
  }
  return static_cast<uint64_t>(select.Integer(0));
}

// Announces the attempts behind `told` up to number `last`.
void EmitAttempts(uint64_t sequence, const v1::Run& run, int32_t last, int32_t& told,
                  std::vector<WatchedEvent>& out) {
  for (const v1::Attempt& attempt : run.attempts()) {
    if (attempt.number() <= told || attempt.number() > last) continue;
    told = attempt.number();
    v1::WatchRunsResponse message;
    message.mutable_attempt()->set_run(run.id());
    *message.mutable_attempt()->mutable_attempt() = attempt;
    Emit(sequence, run.id(), std::move(message), out);
  }
}

constexpr int32_t kAllAttempts = std::numeric_limits<int32_t>::max();

}  // namespace

std::string MakeResumeToken(const std::string& store_id, uint64_t sequence) {
  return StrCat(store_id, "-", sequence);
}

absl::StatusOr<uint64_t> ReadResumeToken(const std::string& token, const std::string& store_id,
                                         uint64_t latest) {
  const size_t dash = token.rfind('-');
  uint64_t sequence = 0;
  bool readable = dash != std::string::npos;
  if (readable) {
    const char* const end = token.data() + token.size();
    const auto [stop, error] = std::from_chars(token.data() + dash + 1, end, sequence);
    readable = error == std::errc() && stop == end &&
               token == MakeResumeToken(token.substr(0, dash), sequence);
  }
  if (!readable) {
    return absl::InvalidArgumentError("resume_token is not one that this server gave");
  }
  if (token.substr(0, dash) != store_id || sequence > latest) {
    return absl::OutOfRangeError(
        "resume_token is from another store (or from one that was set back); watch again without "
        "it to start from the beginning");
  }
  return sequence;
}

RunWatch::RunWatch(storage::Store& store, stream::Hub& hub, Options options)
    : store_(store), hub_(hub), options_(std::move(options)) {
  const auto add = [this](const std::string& run) {
    Target target;
    target.run = run;
    target.fresh = !options_.after.has_value();
    target.cursor = options_.after.value_or(0);
    targets_.push_back(std::move(target));
  };
  if (options_.lobby) add(stream::kLobby);
  for (const std::string& run : options_.runs) add(run);
}

RunWatch::~RunWatch() { OnReady(nullptr); }

void RunWatch::OnReady(std::function<void()> wake) {
  if (subscription_ != 0) hub_.Unsubscribe(std::exchange(subscription_, 0));
  if (!wake) return;
  std::vector<std::string> feeds;
  for (const Target& target : targets_) feeds.push_back(target.run);
  subscription_ = hub_.Subscribe(feeds, std::move(wake));
}

bool RunWatch::finished() const {
  return !options_.lobby &&
         std::all_of(targets_.begin(), targets_.end(), [](const Target& t) { return t.ended; });
}

bool RunWatch::IsTarget(const std::string& run) const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [&](const Target& target) { return target.run == run; });
}

std::optional<std::vector<WatchedEvent>> RunWatch::NextLive() {
  for (const Target& target : targets_) {
    if (target.catching_up) return std::nullopt;
  }
  std::vector<WatchedEvent> out;
  if (!ReadLive(out)) return std::nullopt;
  return out;
}

absl::StatusOr<std::vector<WatchedEvent>> RunWatch::Next() {
  std::vector<WatchedEvent> out;
  more_ = true;  // behind a page of the database comes another, or what is live
  while (true) {
    for (Target& target : targets_) {
      while (target.catching_up) {
        if (absl::Status status = CatchUp(target, out); !status.ok()) return status;
        if (!out.empty() && target.catching_up) return out;  // a page; more follows
      }
      if (out.size() >= kEnoughEvents && &target != &targets_.back()) return out;
    }
    if (!out.empty()) {
      // A token is true when no target was returned further than it says, and none less far.
      uint64_t least = std::numeric_limits<uint64_t>::max(), most = 0;
      for (const Target& target : targets_) {
        most = std::max(most, target.cursor);
        if (!target.ended) least = std::min(least, target.cursor);
      }
      if (least >= most) out.back().resume_token = MakeResumeToken(store_.store_id(), most);
      return out;
    }
    if (ReadLive(out)) return out;
  }
}

absl::Status RunWatch::CatchUp(Target& target, std::vector<WatchedEvent>& out) {
  return store_.Read([&](Database& database) {
    return target.run == stream::kLobby ? CatchUpLobby(database, target, out)
                                        : CatchUpRun(database, target, out);
  });
}

absl::Status RunWatch::CatchUpLobby(Database& database, Target& target,
                                    std::vector<WatchedEvent>& out) {
  const absl::StatusOr<uint64_t> sequence = storage::ReadSequence(database);
  if (!sequence.ok()) return sequence.status();
  if (target.fresh && !options_.tail) {
    storage::RunQuery query;
    query.limit = kLobbyFirst;
    absl::StatusOr<std::vector<v1::Run>> runs = storage::ReadRuns(database, query);
    if (!runs.ok()) return runs.status();
    for (auto run = runs->rbegin(); run != runs->rend(); ++run) EmitRun(*sequence, *run, out);
  } else if (!target.fresh) {
    const absl::StatusOr<bool> complete = PageOfLobby(database, target, out);
    if (!complete.ok()) return complete.status();
    if (!*complete) return absl::OkStatus();
  }
  target.cursor = *sequence;
  target.fresh = false;
  target.in_history = false;
  target.catching_up = false;
  return absl::OkStatus();
}

// A run that changes while pages are read moves to the end of the order, and is told once more.
absl::StatusOr<bool> RunWatch::PageOfLobby(Database& database, Target& target,
                                           std::vector<WatchedEvent>& out) {
  if (!std::exchange(target.in_history, true)) {
    target.changed = target.deleted = {.id = "", .sequence = target.cursor};
  }
  const auto changed = storage::RunsChangedSince(database, target.changed, kLobbyPage);
  if (!changed.ok()) return changed.status();
  for (const storage::ChangedRun& one : *changed) {
    target.changed = one;
    if (IsTarget(one.id)) continue;  // told by its own target
    absl::StatusOr<v1::Run> run = storage::ReadRun(database, one.id);
    if (!run.ok()) return run.status();
    EmitRun(one.sequence, *run, out);
  }
  if (changed->size() == kLobbyPage) return false;
  const auto deleted = storage::RunsDeletedSince(database, target.deleted, kLobbyPage);
  if (!deleted.ok()) return deleted.status();
  for (const storage::ChangedRun& one : *deleted) {
    target.deleted = one;
    if (!IsTarget(one.id)) EmitDeleted(one.sequence, one.id, out);
  }
  return deleted->size() < kLobbyPage;
}

absl::Status RunWatch::CatchUpRun(Database& database, Target& target,
                                  std::vector<WatchedEvent>& out) {
  const absl::StatusOr<uint64_t> sequence = storage::ReadSequence(database);
  if (!sequence.ok()) return sequence.status();
  const absl::StatusOr<uint64_t> changed = ChangedSequence(database, target.run);
  if (absl::IsNotFound(changed.status())) {  // it was there when the watch began
    EmitDeleted(*sequence, target.run, out);
    target.ended = true;
    target.cursor = *sequence;
    target.in_history = false;
    target.catching_up = false;
    return absl::OkStatus();
  }
  if (!changed.ok()) return changed.status();
  const absl::StatusOr<v1::Run> run = storage::ReadRun(database, target.run);
  if (!run.ok()) return run.status();
  if (!target.in_history) {
    target.snapshot_sequence = target.fresh ? 0 : target.cursor;
    if (target.fresh || *changed > target.cursor) {
      EmitRun(*sequence, *run, out);
      target.snapshot_sequence = *changed;
    }
    absl::Status status = StartHistory(database, target, *run, *sequence, out);
    if (!status.ok()) return status;
  }
  if (target.fresh && options_.tail) {
    EndHistory(target, *run, *changed, *sequence, out);
    return absl::OkStatus();
  }
  absl::StatusOr<storage::HistoryPage> page =
      storage::ReadHistory(database, target.run, target.position, options_.from_step, kHistoryPage);
  if (!page.ok()) return page.status();
  for (v1::Points& points : page->points) {
    // Each before its points: what it went on from says which of the earlier ones still count.
    EmitAttempts(*sequence, *run, points.attempt(), target.told_attempt, out);
    v1::WatchRunsResponse message;
    *message.mutable_points() = std::move(points);
    Emit(*sequence, target.run, std::move(message), out);
  }
  target.position = page->position;
  if (page->complete) EndHistory(target, *run, *changed, *sequence, out);
  return absl::OkStatus();
}

absl::Status RunWatch::StartHistory(Database& database, Target& target, const v1::Run& run,
                                    uint64_t sequence, std::vector<WatchedEvent>& out) {
  absl::StatusOr<std::vector<storage::AttemptRow>> attempts =
      storage::ReadAttempts(database, target.run);
  if (!attempts.ok()) return attempts.status();
  target.told_attempt = 0;
  for (const storage::AttemptRow& attempt : *attempts) {
    if (!target.fresh && attempt.started_sequence <= target.cursor) {
      target.told_attempt = attempt.number;
    }
  }
  target.position = {};
  if (!target.fresh) {
    absl::StatusOr<storage::HistoryPosition> position =
        storage::PositionAt(database, target.run, target.cursor);
    if (!position.ok()) return position.status();
    target.position = *position;
  }
  if (target.fresh && options_.tail && run.progress().step() > 0) {
    EmitAttempts(sequence, run, kAllAttempts, target.told_attempt, out);
    v1::WatchRunsResponse message;
    message.mutable_gap()->set_run(target.run);
    message.mutable_gap()->set_next_step(run.progress().step() + 1);
    Emit(sequence, target.run, std::move(message), out);
  }
  target.in_history = true;
  return absl::OkStatus();
}

void RunWatch::EndHistory(Target& target, const v1::Run& run, uint64_t changed, uint64_t sequence,
                          std::vector<WatchedEvent>& out) {
  EmitAttempts(sequence, run, kAllAttempts, target.told_attempt, out);
  if (changed > target.snapshot_sequence) EmitRun(sequence, run, out);
  if (domain::IsTerminal(run.state())) {
    // One who resumes from behind the end was told of it.
    if (target.fresh || changed > target.cursor) EmitEnd(sequence, run, out);
    target.ended = !options_.lobby;
  }
  target.snapshot_sequence = changed;
  target.cursor = sequence;
  target.fresh = false;
  target.in_history = false;
  target.catching_up = false;
}

bool RunWatch::ReadLive(std::vector<WatchedEvent>& out) {
  // Targets that caught up at different times: below the latest, some events were returned early.
  uint64_t uneven = 0;
  for (const Target& target : targets_) uneven = std::max(uneven, target.cursor);
  uint64_t boundary = std::numeric_limits<uint64_t>::max();
  std::vector<std::vector<EventPtr>> read(targets_.size());
  bool behind = false;
  more_ = false;
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].ended) continue;
    stream::Hub::Reading reading = hub_.Read(targets_[i].run, targets_[i].cursor, kLivePage);
    if (reading.behind) {
      targets_[i].catching_up = true;
      behind = true;
      continue;
    }
    // Later events of a target that has more, or that was read earlier than another, are not here.
    boundary =
        std::min(boundary, reading.more ? reading.events.back()->sequence() : reading.published);
    more_ = more_ || reading.more;
    read[i] = std::move(reading.events);
  }
  if (behind) return false;
  std::vector<EventPtr> events;
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!targets_[i].ended) TakeUpTo(boundary, targets_[i], std::move(read[i]), events);
  }
  if (targets_.size() > 1) {
    std::stable_sort(events.begin(), events.end(), [](const EventPtr& a, const EventPtr& b) {
      return a->sequence() < b->sequence();
    });
  }
  AddTokens(hub_.Merge(std::move(events)), uneven, out);
  return true;
}

void RunWatch::TakeUpTo(uint64_t boundary, Target& target, std::vector<EventPtr> events,
                        std::vector<EventPtr>& taken) {
  const bool lobby = target.run == stream::kLobby;
  for (EventPtr& event : events) {
    if (event->sequence() > boundary) {
      more_ = true;
      break;
    }
    const bool end = event->message().has_end() && !options_.lobby;
    if (!lobby && (end || event->message().has_deleted())) target.ended = true;
    if (lobby && IsTarget(event->run())) continue;  // told by its own target
    taken.push_back(std::move(event));
  }
  target.cursor = std::max(target.cursor, boundary);
}

// The last event of a write says that everything up to it was seen: also what was merged into a
// later event, so that a write's progress has no token while its points are still to come.
void RunWatch::AddTokens(std::vector<EventPtr> events, uint64_t uneven,
                         std::vector<WatchedEvent>& out) {
  out.reserve(events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const uint64_t sequence = events[i]->sequence();
    const bool whole = i + 1 == events.size() || events[i + 1]->first_sequence() > sequence;
    const bool has_token = whole && sequence >= uneven;
    out.push_back(
        {std::move(events[i]), has_token ? MakeResumeToken(store_.store_id(), sequence) : ""});
  }
}

}  // namespace normlab::app
