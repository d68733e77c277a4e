#include "server/domain/downsample.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace normlab::domain {

void AddPoint(Block& block, Point point) {
  if (block.points++ == 0) block.first = point;
  block.last = point;
  if (!std::isfinite(point.value)) {
    if (block.non_finite++ == 0) block.first_bad = point;
    return;
  }
  if (!block.lowest || point.value < block.lowest->value) block.lowest = point;
  if (!block.highest || point.value > block.highest->value) block.highest = point;
}

void AppendBlock(Block& block, const Block& next) {
  if (next.points == 0) return;
  if (block.points == 0) {
    block = next;
    return;
  }
  block.points += next.points;
  block.last = next.last;
  if (next.lowest && (!block.lowest || next.lowest->value < block.lowest->value)) {
    block.lowest = next.lowest;
  }
  if (next.highest && (!block.highest || next.highest->value > block.highest->value)) {
    block.highest = next.highest;
  }
  block.non_finite += next.non_finite;
  if (!block.first_bad) block.first_bad = next.first_bad;
}

void AppendKept(const Block& block, Curve& curve) {
  if (block.points == 0) return;
  std::array<Point, kKeptOfBlock> kept = {block.first, block.lowest.value_or(block.first),
                                          block.highest.value_or(block.first),
                                          block.first_bad.value_or(block.first), block.last};
  std::sort(kept.begin(), kept.end(),
            [](const Point& a, const Point& b) { return a.step < b.step; });
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0 && kept[i].step == kept[i - 1].step) continue;
    curve.steps.push_back(kept[i].step);
    curve.values.push_back(kept[i].value);
  }
}

}  // namespace normlab::domain
