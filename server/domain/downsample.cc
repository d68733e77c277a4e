#include "server/domain/downsample.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace normlab::domain {
namespace {

constexpr size_t kKeptPerBucket = 4;

// Indices of the points of [begin, end) that stay, rising and without repeats.
void KeepOfBucket(const Curve& curve, size_t begin, size_t end, std::vector<size_t>& kept) {
  std::optional<size_t> lowest, highest, bad;
  for (size_t i = begin; i < end; ++i) {
    const double value = curve.values[i];
    if (!std::isfinite(value)) {
      if (!bad) bad = i;
      continue;
    }
    if (!lowest || value < curve.values[*lowest]) lowest = i;
    if (!highest || value > curve.values[*highest]) highest = i;
  }
  std::array<size_t, kKeptPerBucket> indices = {
      begin, end - 1, bad.value_or(lowest.value_or(begin)), highest.value_or(begin)};
  std::sort(indices.begin(), indices.end());
  kept.insert(kept.end(), indices.begin(), std::unique(indices.begin(), indices.end()));
}

}  // namespace

CurveFacts FactsOf(const Curve& curve) {
  CurveFacts facts;
  facts.total_points = static_cast<int64_t>(curve.steps.size());
  for (size_t i = 0; i < curve.values.size(); ++i) {
    if (std::isfinite(curve.values[i])) continue;
    if (facts.non_finite_points++ == 0) facts.first_non_finite_step = curve.steps[i];
  }
  return facts;
}

Curve Downsample(const Curve& curve, size_t max_points) {
  const size_t total = curve.steps.size();
  if (max_points == 0 || total <= std::max(max_points, kKeptPerBucket)) return curve;
  const size_t buckets = std::max<size_t>(1, max_points / kKeptPerBucket);
  std::vector<size_t> kept;
  kept.reserve(buckets * kKeptPerBucket);
  for (size_t b = 0; b < buckets; ++b) {
    const size_t begin = b * total / buckets;
    const size_t end = (b + 1) * total / buckets;
    if (begin < end) KeepOfBucket(curve, begin, end, kept);
  }
  Curve drawn;
  drawn.steps.reserve(kept.size());
  drawn.values.reserve(kept.size());
  for (const size_t i : kept) {
    drawn.steps.push_back(curve.steps[i]);
    drawn.values.push_back(curve.values[i]);
  }
  return drawn;
}

}  // namespace normlab::domain
