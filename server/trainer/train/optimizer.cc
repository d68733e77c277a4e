#include "server/trainer/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/choices.h"

namespace normlab::trainer {
namespace {

// Calls work(from, to, decay) for what of each segment lies in [begin, end).
template <typename Work>
void ForEachSegment(const std::vector<DecaySegment>& segments, int64_t begin, int64_t end,
                    const Work& work) {
  for (const DecaySegment& segment : segments) {
    const int64_t from = std::max(begin, segment.begin);
    const int64_t to = std::min(end, segment.end);
    if (from < to) work(from, to, segment.decay);
  }
}

class AdamW final : public Optimizer {
 public:
  AdamW(const TrainingSettings& settings, const ParameterTable& parameters, const Kernels& kernels)
      : settings_(settings),
        kernels_(kernels),
        segments_(DecaySegments(settings, parameters)),
        first_moment_(parameters.buffer_size()),
        second_moment_(parameters.buffer_size()) {}

  void Update(int64_t step, double learning_rate, int64_t begin, int64_t end,
              const float* gradients, float* weights) override {
    const float m_correction = BiasCorrection(settings_.beta1, step);
    const float v_correction = BiasCorrection(settings_.beta2, step);
    ForEachSegment(segments_, begin, end, [&](int64_t from, int64_t to, float decay) {
      kernels_.adamw(gradients + from, to - from, static_cast<float>(learning_rate),
                     static_cast<float>(settings_.beta1), static_cast<float>(settings_.beta2),
                     static_cast<float>(settings_.epsilon), decay, m_correction, v_correction,
                     weights + from, first_moment_.data() + from, second_moment_.data() + from);
    });
  }

  std::vector<State> States() override {
    return {{"first_moment", first_moment_.span()}, {"second_moment", second_moment_.span()}};
  }

 private:
  const TrainingSettings& settings_;
  const Kernels& kernels_;
  const std::vector<DecaySegment> segments_;
  Buffer first_moment_;
  Buffer second_moment_;
};

// Bound by memory, so it needs no kernel of its own.
class Sgd final : public Optimizer {
 public:
  Sgd(const TrainingSettings& settings, const ParameterTable& parameters)
      : settings_(settings),
        segments_(DecaySegments(settings, parameters)),
        momentum_(parameters.buffer_size()) {}

  void Update(int64_t /*step*/, double learning_rate, int64_t begin, int64_t end,
              const float* gradients, float* weights) override {
    const auto rate = static_cast<float>(learning_rate);
    const auto momentum = static_cast<float>(settings_.momentum);
    float* average = momentum_.data();
    ForEachSegment(segments_, begin, end, [&](int64_t from, int64_t to, float decay) {
      for (int64_t i = from; i < to; ++i) {
        average[i] = momentum * average[i] + gradients[i];
        weights[i] -= rate * (average[i] + decay * weights[i]);
      }
    });
  }

  std::vector<State> States() override { return {{"momentum", momentum_.span()}}; }

 private:
  const TrainingSettings& settings_;
  const std::vector<DecaySegment> segments_;
  Buffer momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(const TrainingSettings& settings,
                                         const ParameterTable& parameters, const Kernels& kernels) {
  CheckOptimizer(settings);
  if (settings.optimizer == "sgd") return std::make_unique<Sgd>(settings, parameters);
  return std::make_unique<AdamW>(settings, parameters, kernels);
}

std::vector<DecaySegment> DecaySegments(const TrainingSettings& settings,
                                        const ParameterTable& parameters) {
  const bool matrices_only = settings.decay_parameters == "matrices";
  std::vector<DecaySegment> segments;
  for (const Parameter& parameter : parameters.all()) {
    const bool decays = !matrices_only || parameter.shape.size() >= 2;
    const float decay = decays ? static_cast<float>(settings.weight_decay) : 0.0f;
    const int64_t end = parameter.offset + parameter.count;
    if (!segments.empty() && segments.back().decay == decay) {
      segments.back().end = end;  // the gap between two tensors is zero and stays zero
    } else {
      segments.push_back({parameter.offset, end, decay});
    }
  }
  return segments;
}

float BiasCorrection(double beta, int64_t step) {
  // Of the beta that the kernels use, which is rounded to single precision: 1 - .999 is off by 1e-5
  // there, and average and correction have to be off alike.
  const double rounded = static_cast<float>(beta);
  return static_cast<float>(1.0 / (1.0 - std::pow(rounded, static_cast<double>(step))));
}

void CheckOptimizer(const TrainingSettings& settings) {
  CheckChoice("optimizer", settings.optimizer, {"adamw", "sgd"});
  CheckChoice("decay_parameters", settings.decay_parameters, {"all", "matrices"});
}

}  // namespace normlab::trainer
