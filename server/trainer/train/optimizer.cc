#include "server/trainer/train/optimizer.h"

#include <algorithm>
#include <cmath>

namespace normlab::trainer {

double LearningRate(const TrainingSettings& settings, int64_t step) {
  const int64_t warmup = settings.warmup_steps;
  if (step >= warmup) return settings.learning_rate;
  return settings.learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
}

AdamW::AdamW(const TrainingSettings& settings, const ParameterTable& parameters,
             const Kernels& kernels)
    : settings_(settings),
      kernels_(kernels),
      first_moment_(parameters.buffer_size()),
      second_moment_(parameters.buffer_size()) {
  const bool matrices_only = settings.decay_parameters == "matrices";
  for (const Parameter& parameter : parameters.all()) {
    const bool decays = !matrices_only || parameter.shape.size() >= 2;
    const float decay = decays ? static_cast<float>(settings.weight_decay) : 0.0f;
    const int64_t end = parameter.offset + parameter.count;
    if (!segments_.empty() && segments_.back().decay == decay) {
      segments_.back().end = end;  // the gap between two tensors is zero and stays zero
    } else {
      segments_.push_back({parameter.offset, end, decay});
    }
  }
}

void AdamW::Update(int64_t step, double learning_rate, int64_t begin, int64_t end,
                   const float* gradients, float* weights) {
  const auto t = static_cast<double>(step);
  const auto m_correction = static_cast<float>(1.0 / (1.0 - std::pow(settings_.beta1, t)));
  const auto v_correction = static_cast<float>(1.0 / (1.0 - std::pow(settings_.beta2, t)));
  for (const Segment& segment : segments_) {
    const int64_t from = std::max(begin, segment.begin);
    const int64_t to = std::min(end, segment.end);
    if (from >= to) continue;
    kernels_.adamw(gradients + from, to - from, static_cast<float>(learning_rate),
                   static_cast<float>(settings_.beta1), static_cast<float>(settings_.beta2),
                   static_cast<float>(settings_.epsilon), segment.decay, m_correction, v_correction,
                   weights + from, first_moment_.data() + from, second_moment_.data() + from);
  }
}

}  // namespace normlab::trainer
