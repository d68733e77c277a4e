#include "server/scheduler/fair_share.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace normlab::scheduler {
namespace {

constexpr double kNothing = 1e-3;  // device-seconds that no table shows

}  // namespace

double UsageLeft(double seconds) { return std::exp2(-std::max(0.0, seconds) / kUsageHalfLife); }

double UsageOfHolding(double width, double seconds) {
  return width * kUsageHalfLife / std::numbers::ln2 * (1 - UsageLeft(seconds));
}

void UsageLedger::Add(const std::string& user, double device_seconds, double now) {
  Past& past = past_[user];
  past.device_seconds = past.device_seconds * UsageLeft(now - past.time) + device_seconds;
  past.time = now;
}

void UsageLedger::AddPast(const std::string& user, double width, double seconds, double ago,
                          double now) {
  Add(user, UsageOfHolding(width, seconds) * UsageLeft(ago), now);
}

void UsageLedger::Take(const std::string& run, const std::string& user, double width,
                       double since) {
  taken_.try_emplace(run, Taken{user, width, since});
}

void UsageLedger::Return(const std::string& run, double now) {
  const auto found = taken_.find(run);
  if (found == taken_.end()) return;
  const Taken taken = found->second;
  taken_.erase(found);
  Add(taken.user, UsageOfHolding(taken.width, now - taken.since), now);
}

std::map<std::string, double> UsageLedger::At(double now) const {
  std::map<std::string, double> usage;
  for (const auto& [user, past] : past_) {
    usage[user] += past.device_seconds * UsageLeft(now - past.time);
  }
  for (const auto& [run, taken] : taken_) {
    usage[taken.user] += UsageOfHolding(taken.width, now - taken.since);
  }
  std::erase_if(usage, [](const auto& one) { return one.second < kNothing; });
  return usage;
}

}  // namespace normlab::scheduler
