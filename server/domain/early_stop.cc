#include "server/domain/early_stop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "server/base/strings.h"

namespace normlab::domain {
namespace {

constexpr char kStoppedEarly[] = "stopped early at step ";
constexpr int32_t kMinimumPeers = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Badness(double loss) { return std::isfinite(loss) ? loss : kInfinity; }

}  // namespace

double Quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double share = position - static_cast<double>(below);
  if (share == 0 || below + 1 == values.size()) return values[below];
  const double low = values[below], high = values[below + 1];
  return std::isinf(high) ? high : low + share * (high - low);
}

int32_t MinimumPeers(const v1::EarlyStop& rule) {
  return rule.minimum_peers() > 0 ? rule.minimum_peers() : kMinimumPeers;
}

std::string WhyStopEarly(const v1::EarlyStop& rule, int64_t step, double loss,
                         std::vector<double> peers) {
  if (std::ssize(peers) < MinimumPeers(rule)) return "";
  for (double& peer : peers) peer = Badness(peer);
  const size_t count = peers.size();
  const double bound = Quantile(std::move(peers), rule.quantile());
  if (Badness(loss) <= bound) return "";
  const std::string shown = std::isfinite(loss) ? StrCat(loss) : "that is not finite";
  return StrCat(kStoppedEarly, step, ": loss ", shown, " is above the ", rule.quantile(),
                " quantile, ", bound, ", of ", count, count == 1 ? " peer" : " peers");
}

bool WasStoppedEarly(const v1::Run& run) {
  return run.state() == v1::Run::STATE_CANCELLED && run.end_reason().starts_with(kStoppedEarly);
}

}  // namespace normlab::domain
