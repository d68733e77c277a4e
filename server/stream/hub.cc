#include "server/stream/hub.h"

#include <algorithm>
#include <utility>

#include "server/domain/run_state.h"

namespace normlab::stream {
namespace {

// Events kept of a run that has ended: enough for its watchers to see the end.
constexpr size_t kKeptOfEnded = 64;

bool ForLobby(const v1::WatchRunsResponse& message) {
  return message.has_run() || message.has_end() || message.has_progress() ||
         message.has_deleted() || message.has_notice();
}

// Nothing comes of a run in that state, unless it leaves it again (a retry).
bool IsOver(const v1::WatchRunsResponse& message) {
  return message.has_end() || message.has_deleted() ||
         (message.has_run() && domain::IsTerminal(message.run().state()));
}

bool After(uint64_t sequence, const domain::EventPtr& event) {
  return sequence < event->sequence();
}

}  // namespace

Hub::Feed& Hub::FeedOf(const std::string& name) {
  const auto [found, is_new] = feeds_.try_emplace(name);
  if (is_new) found->second.evicted_through = std::max(floor_, dropped_through_);
  return found->second;
}

void Hub::Add(const std::string& name, const domain::EventPtr& event) {
  Feed& feed = FeedOf(name);
  feed.recent.push_back(event);
  if (name != kLobby && (event->message().has_run() || IsOver(event->message()))) {
    feed.ended = IsOver(event->message());
  }
  while (feed.recent.size() > (feed.ended ? std::min(kKeptOfEnded, kept_) : kept_)) {
    feed.evicted_through = feed.recent.front()->sequence();
    feed.recent.pop_front();
  }
}

// Each bell at most once a Publish.
void Hub::Ring(const std::string& name) {
  for (Subscription* subscription : feeds_[name].subscriptions) {
    if (std::exchange(subscription->rung, publishes_) != publishes_) subscription->bell();
  }
}

void Hub::Publish(const std::vector<domain::EventPtr>& events, uint64_t sequence) {
  MutexLock lock(mutex_);
  for (const domain::EventPtr& event : events) {
    Add(event->run(), event);
    if (ForLobby(event->message())) Add(kLobby, event);
  }
  published_ = sequence;
  ++publishes_;
  for (const domain::EventPtr& event : events) {
    Ring(event->run());
    if (ForLobby(event->message())) Ring(kLobby);
  }
  for (const domain::EventPtr& event : events) {
    if (IsOver(event->message())) DropIfIdle(event->run());
  }
}

// An ended run that nobody watches is left to the database.
void Hub::DropIfIdle(const std::string& name) {
  const auto found = feeds_.find(name);
  if (found == feeds_.end() || !found->second.ended || !found->second.subscriptions.empty()) return;
  if (!found->second.recent.empty()) {
    dropped_through_ = std::max(dropped_through_, found->second.recent.back()->sequence());
  }
  feeds_.erase(found);
}

Hub::Reading Hub::Read(const std::string& name, uint64_t after, size_t limit) {
  MutexLock lock(mutex_);
  Reading reading;
  reading.published = published_;
  const auto found = feeds_.find(name);
  if (found == feeds_.end()) {
    reading.behind = after < std::max(floor_, dropped_through_);
    return reading;
  }
  const Feed& feed = found->second;
  if (after < feed.evicted_through) {
    reading.behind = true;
    return reading;
  }
  auto event = std::upper_bound(feed.recent.begin(), feed.recent.end(), after, After);
  for (; event != feed.recent.end(); ++event) {
    const bool same_write =
        !reading.events.empty() && reading.events.back()->sequence() == (*event)->sequence();
    if (reading.events.size() >= limit && !same_write) {
      reading.more = true;
      break;
    }
    reading.events.push_back(*event);
  }
  return reading;
}

uint64_t Hub::published() const {
  MutexLock lock(mutex_);
  return published_;
}

int64_t Hub::Subscribe(const std::vector<std::string>& feeds, Bell bell) {
  MutexLock lock(mutex_);
  const int64_t id = next_subscription_++;
  Subscription& subscription = subscriptions_[id];
  subscription = {feeds, std::move(bell)};
  for (const std::string& feed : feeds) FeedOf(feed).subscriptions.insert(&subscription);
  return id;
}

void Hub::Unsubscribe(int64_t subscription) {
  MutexLock lock(mutex_);
  const auto found = subscriptions_.find(subscription);
  if (found == subscriptions_.end()) return;
  for (const std::string& feed : found->second.feeds) {
    feeds_[feed].subscriptions.erase(&found->second);
    DropIfIdle(feed);
    // A feed made only by watching an ended run holds nothing.
    const auto empty = feeds_.find(feed);
    if (empty != feeds_.end() && empty->second.recent.empty() &&
        empty->second.subscriptions.empty()) {
      dropped_through_ = std::max(dropped_through_, empty->second.evicted_through);
      feeds_.erase(empty);
    }
  }
  subscriptions_.erase(found);
}

int64_t Hub::subscriptions() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(subscriptions_.size());
}

}  // namespace normlab::stream
