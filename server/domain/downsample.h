// Fewer points that still show everything that matters: a run of neighbouring points is known by
// its first and last, its lowest and highest and its first non-finite one, so that a single spike
// in a million steps is always drawn.
//
//   Block block;
//   for (...) AddPoint(block, {step, value});
//   AppendKept(block, curve);
//
// Adding points one by one and appending blocks give the same, however the points were cut.
#ifndef NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_
#define NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace normlab::domain {

struct Curve {
  std::vector<int64_t> steps;  // rising
  std::vector<double> values;  // as many
};

struct Point {
  int64_t step = 0;
  double value = 0;
};

// What is kept of neighbouring points. Of equal values the earliest is the lowest or highest.
struct Block {
  int64_t points = 0;
  Point first, last;               // when there are points
  std::optional<Point> lowest;     // of the finite ones
  std::optional<Point> highest;    // of the finite ones
  int64_t non_finite = 0;          // points that are NaN or infinite
  std::optional<Point> first_bad;  // the first of these
};

// A block's points that are drawn: at most so many.
inline constexpr int64_t kKeptOfBlock = 5;

void AddPoint(Block& block, Point point);

// Makes `block` that of its own points and the later ones of `next`.
void AppendBlock(Block& block, const Block& next);

// Appends the points that are kept of a block, each once.
void AppendKept(const Block& block, Curve& curve);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_DOWNSAMPLE_H_
