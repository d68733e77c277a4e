// Recent events of every run, kept for those who watch. A watcher holds a position (a sequence),
// not a queue: a slow one costs nothing but the database reads with which it catches up, and never
// slows a producer.
//
//   hub.Publish(events, sequence);                       // the writer's thread, after each commit
//   Hub::Reading reading = hub.Read(run, after, limit);  // any thread
//   if (reading.behind) ...                              // read the database, come back
#ifndef NORMLAB_SERVER_STREAM_HUB_H_
#define NORMLAB_SERVER_STREAM_HUB_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/domain/event.h"
#include "server/stream/merge.h"

namespace normlab::stream {

// The feed of all runs' states, under a name that no run has.
inline constexpr char kLobby[] = "";

class Hub {
 public:
  // Events kept of each feed by default. A watcher further behind reads the database.
  static constexpr size_t kKept = 2048;

  // `sequence`: of the latest write before the first Publish; what came before is not here.
  explicit Hub(uint64_t sequence, size_t kept = kKept)
      : floor_(sequence), kept_(kept), published_(sequence) {}

  // Adds the events of a commit, in order, and wakes whoever watches their runs. States, ends and
  // progress also go to the lobby. `sequence` is the latest of the commit.
  void Publish(const std::vector<domain::EventPtr>& events, uint64_t sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct Reading {
    // After `after`, in order; the last ones of a sequence are never cut apart.
    std::vector<domain::EventPtr> events;
    // Some events after `after` are no longer here: read the database.
    bool behind = false;
    // There is more to read.
    bool more = false;
    // Everything published when this was read.
    uint64_t published = 0;
  };
  Reading Read(const std::string& feed, uint64_t after, size_t limit) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes few events of many, for whoever read them here.
  std::vector<domain::EventPtr> Merge(std::vector<domain::EventPtr> events) {
    return merger_.Merge(std::move(events));
  }

  uint64_t published() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A watcher's bell. Ringing is done under the hub's lock: it must be quick and must not call the
  // hub. After Unsubscribe returns it is not rung any more.
  using Bell = std::function<void()>;
  int64_t Subscribe(const std::vector<std::string>& feeds, Bell bell) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe(int64_t subscription) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t subscriptions() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Subscription {
    std::vector<std::string> feeds;
    Bell bell;
    uint64_t rung = 0;  // the Publish that rang it last
  };
  struct Feed {
    std::deque<domain::EventPtr> recent;
    uint64_t evicted_through = 0;  // sequence of the latest event dropped
    std::set<Subscription*> subscriptions;
    bool ended = false;  // nothing more will come; kept while somebody watches
  };

  Feed& FeedOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const std::string& name, const domain::EventPtr& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ring(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIfIdle(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t floor_;
  const size_t kept_;
  Merger merger_;
  mutable Mutex mutex_;
  uint64_t published_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Feed> feeds_ ABSL_GUARDED_BY(mutex_);
  // Feeds that were dropped: whoever comes later reads what is missing from the database.
  uint64_t dropped_through_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t publishes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Subscription> subscriptions_ ABSL_GUARDED_BY(mutex_);
  int64_t next_subscription_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace normlab::stream

#endif  // NORMLAB_SERVER_STREAM_HUB_H_
