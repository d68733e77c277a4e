// Axes of plots: where a value stands and where the labelled lines go. Shared by SVG and terminal.
#ifndef NORMLAB_SERVER_EXPORT_AXIS_H_
#define NORMLAB_SERVER_EXPORT_AXIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/export/curve.h"

namespace normlab::exporter {

struct Tick {
  double value = 0;
  std::string label;  // empty: a faint line between the labelled ones
};

// A logarithmic axis over the positive finite values it was shown.
class LogAxis {
 public:
  void Include(double value);
  void Include(const Series& series);

  // Whether there is anything to draw; without, At() and Ticks() mean nothing.
  bool HasRange() const { return low_ > 0; }

  // Leaves some room at both ends. To be called once, after the last Include.
  void Pad();

  // 0 at the low end, 1 at the high end. `value` is positive and finite.
  double At(double value) const;

  // Decades, with 2 and 5 between them where there are few, and unlabelled lines at the rest.
  // At most about `most` labels.
  std::vector<Tick> Ticks(int most) const;

  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_ = 0;
  double high_ = 0;
};

// About `wanted` round whole numbers over first..last.
std::vector<int64_t> StepTicks(int64_t first, int64_t last, int wanted);

// "0.001", "10", "10⁻⁷": how a value of a log axis is labelled.
std::string DecadeLabel(double value);

}  // namespace normlab::exporter

#endif  // NORMLAB_SERVER_EXPORT_AXIS_H_
