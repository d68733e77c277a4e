// Noise in, random targets out: nothing to learn, everything to measure at initialisation (Xiong et
// al. 2020, whose theory wants inputs x0 ~ N(0, I)).
#include <cmath>
#include <numbers>

#include "server/trainer/train/data_tasks.h"

namespace normlab::trainer {
namespace {

class GaussianData final : public RandomData {
 public:
  explicit GaussianData(const TrainingSettings& settings)
      : RandomData(settings, 4), width_(static_cast<size_t>(settings.d_model)) {}

  // Inputs first, then the targets.
  void Next(Batch& batch) override {
    batch.inputs.resize(batch_ * time_ * width_);
    batch.targets.resize(batch_ * time_);
    for (size_t i = 0; i < batch.inputs.size(); i += 2) {
      const auto [first, second] = NormalPair();
      batch.inputs[i] = first;
      if (i + 1 < batch.inputs.size()) batch.inputs[i + 1] = second;
    }
    for (int32_t& target : batch.targets) target = static_cast<int32_t>(random_.Below(vocab_));
  }

 private:
  // Two independent standard normals (Box and Muller 1958).
  std::pair<float, float> NormalPair() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random_.Uniform()));
    const double angle = 2.0 * std::numbers::pi * random_.Uniform();
    return {static_cast<float>(radius * std::cos(angle)),
            static_cast<float>(radius * std::sin(angle))};
  }

  const size_t width_;
};

}  // namespace

std::unique_ptr<DataSource> MakeGaussianData(const TrainingSettings& settings) {
  return std::make_unique<GaussianData>(settings);
}

}  // namespace normlab::trainer
