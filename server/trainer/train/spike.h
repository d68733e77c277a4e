// Notices when the loss jumps.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_SPIKE_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_SPIKE_H_

#include <cstddef>
#include <deque>
#include <numeric>
#include <span>
#include <vector>

namespace normlab::trainer {

// A loss is a spike if it is at least twice the mean of the (up to) 100 before it.
class SpikeDetector {
 public:
  bool IsSpike(double loss) {
    const bool spike = !window_.empty() && loss >= 2.0 * Mean();
    window_.push_back(loss);
    if (window_.size() > kWindow) window_.pop_front();
    return spike;
  }

  // The losses it compares with, oldest first: for a checkpoint.
  std::vector<double> window() const { return {window_.begin(), window_.end()}; }
  void set_window(std::span<const double> losses) { window_.assign(losses.begin(), losses.end()); }

 private:
  static constexpr size_t kWindow = 100;

  double Mean() const {
    const double sum = std::accumulate(window_.begin(), window_.end(), 0.0);
    return sum / static_cast<double>(window_.size());
  }

  std::deque<double> window_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_SPIKE_H_
