// A watcher's way through history and live events: the database until it has caught up, the hub
// from there on, the database again when it falls behind.
#ifndef NORMLAB_SERVER_APP_RUN_WATCH_H_
#define NORMLAB_SERVER_APP_RUN_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/app/api.h"
#include "server/storage/history.h"
#include "server/storage/runs.h"
#include "server/storage/store.h"
#include "server/stream/hub.h"

namespace normlab::app {

// "STOREID-SEQUENCE".
std::string MakeResumeToken(const std::string& store_id, uint64_t sequence);
// OUT_OF_RANGE when the token is another store's, or later than `latest`.
absl::StatusOr<uint64_t> ReadResumeToken(const std::string& token, const std::string& store_id,
                                         uint64_t latest);

class RunWatch : public Watch {
 public:
  struct Options {
    // Without repeats; all existing, or deleted since `after`.
    std::vector<std::string> runs;
    bool lobby = false;             // the states of all runs as well
    std::optional<uint64_t> after;  // sequence of the resume token
    int64_t from_step = 0;
    bool tail = false;
  };
  RunWatch(storage::Store& store, stream::Hub& hub, Options options);
  ~RunWatch() override;

  absl::StatusOr<std::vector<WatchedEvent>> Next() override;
  std::optional<std::vector<WatchedEvent>> NextLive() override;
  bool more() const override { return more_; }
  bool finished() const override;
  void OnReady(std::function<void()> wake) override;

 private:
  // One watched run, or the lobby.
  struct Target {
    std::string run;      // stream::kLobby for the lobby
    uint64_t cursor = 0;  // everything up to this sequence was returned
    bool fresh = true;    // nothing was ever returned: everything is new
    bool catching_up = true;
    bool in_history = false;               // some of this catch-up was returned
    storage::ChangedRun changed, deleted;  // of the lobby: what of it was returned last
    uint64_t snapshot_sequence = 0;        // the run's state as last returned
    storage::HistoryPosition position;
    int32_t told_attempt = 0;  // attempts up to this number were announced
    // Nothing more comes of it. A watch of all runs goes on beyond the end of one, which may be
    // labelled, archived or tried again; there only a deleted one has ended.
    bool ended = false;
  };

  absl::Status CatchUp(Target& target, std::vector<WatchedEvent>& out);
  absl::Status CatchUpRun(storage::Database& database, Target& target,
                          std::vector<WatchedEvent>& out);
  absl::Status CatchUpLobby(storage::Database& database, Target& target,
                            std::vector<WatchedEvent>& out);
  // The next page of what changed since the cursor. True when that was all.
  absl::StatusOr<bool> PageOfLobby(storage::Database& database, Target& target,
                                   std::vector<WatchedEvent>& out);
  absl::Status StartHistory(storage::Database& database, Target& target, const v1::Run& run,
                            uint64_t sequence, std::vector<WatchedEvent>& out);
  void EndHistory(Target& target, const v1::Run& run, uint64_t changed, uint64_t sequence,
                  std::vector<WatchedEvent>& out);
  // False when some target has fallen behind and must catch up first.
  bool ReadLive(std::vector<WatchedEvent>& out);
  // Moves a target's events up to the sequence `boundary` to `taken`.
  void TakeUpTo(uint64_t boundary, Target& target, std::vector<domain::EventPtr> events,
                std::vector<domain::EventPtr>& taken);
  void AddTokens(std::vector<domain::EventPtr> events, uint64_t uneven,
                 std::vector<WatchedEvent>& out);
  bool IsTarget(const std::string& run) const;

  storage::Store& store_;
  stream::Hub& hub_;
  const Options options_;
  std::vector<Target> targets_;
  bool more_ = false;
  int64_t subscription_ = 0;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_WATCH_H_
