// Fewer points that still show everything that matters.
#ifndef NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_
#define NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace normlab::domain {

struct Curve {
  std::vector<int64_t> steps;   // rising
  std::vector<double> values;   // as many
};

// What is left out when a curve is drawn with fewer points.
struct CurveFacts {
  int64_t total_points = 0;
  int64_t non_finite_points = 0;
  std::optional<int64_t> first_non_finite_step;
};

CurveFacts FactsOf(const Curve& curve);

// At most `max_points` points of `curve` (all when 0 or when there are no more): the curve is cut
// into buckets of equally many points, and of each the first, last, smallest and largest finite
// points are kept, so that a single spike in a million steps is always drawn. The first non-finite
// point of each bucket is kept in place of its smallest. Equal input gives equal output. A bound
// below 4 counts as 4.
Curve Downsample(const Curve& curve, size_t max_points);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_
