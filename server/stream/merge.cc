#include "server/stream/merge.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace normlab::stream {
namespace {

// Watchers are at a few places at a time: the quick ones at the front, the rest close behind.
constexpr size_t kRemembered = 32;

int64_t CountPoints(const domain::Event& event) {
  int64_t count = 0;
  for (const v1::Column& column : event.message().points().columns()) count += column.steps_size();
  return count;
}

bool SameAttempt(const domain::Event& a, const domain::Event& b) {
  return a.message().has_points() && b.message().has_points() && a.run() == b.run() &&
         a.message().points().attempt() == b.message().points().attempt();
}

domain::EventPtr Concatenate(const domain::EventPtr* events, size_t count) {
  const domain::Event& last = *events[count - 1];
  v1::WatchRunsResponse message;
  v1::Points& all = *message.mutable_points();
  all.set_run(last.run());
  all.set_attempt(last.message().points().attempt());
  std::unordered_map<std::string, int> index;
  for (size_t i = 0; i < count; ++i) {
    for (const v1::Column& column : events[i]->message().points().columns()) {
      const auto [found, is_new] = index.emplace(column.name(), all.columns_size());
      if (is_new) all.add_columns()->set_name(column.name());
      v1::Column& joined = *all.mutable_columns(found->second);
      joined.mutable_steps()->MergeFrom(column.steps());
      joined.mutable_values()->MergeFrom(column.values());
    }
  }
  return std::make_shared<domain::Event>(events[0]->first_sequence(), last.sequence(), last.run(),
                                         std::move(message));
}

}  // namespace

std::vector<domain::EventPtr> Merger::Merge(std::vector<domain::EventPtr> events) {
  if (events.size() < 2) return events;
  std::vector<domain::EventPtr> out;
  out.reserve(events.size());
  for (size_t first = 0, end; first < events.size(); first = end) {
    end = first + 1;
    int64_t points = CountPoints(*events[first]);
    while (end < events.size() && SameAttempt(*events[first], *events[end])) {
      points += CountPoints(*events[end]);
      if (points > kMostPoints) break;
      ++end;
    }
    out.push_back(end == first + 1 ? std::move(events[first])
                                   : MergeRange(&events[first], end - first));
  }
  return out;
}

domain::EventPtr Merger::MergeRange(const domain::EventPtr* events, size_t count) {
  MutexLock lock(mutex_);
  const domain::EventPtr &first = events[0], &last = events[count - 1];
  // What is between two events of a feed is the same for everybody.
  for (const Made& made : made_) {
    if (made.first == first && made.last == last) return made.merged;
  }
  made_.push_front({first, last, Concatenate(events, count)});
  if (made_.size() > kRemembered) made_.pop_back();
  return made_.front().merged;
}

}  // namespace normlab::stream
