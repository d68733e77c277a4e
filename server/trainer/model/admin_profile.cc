#include "server/trainer/model/admin_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/model.h"
#include "server/trainer/model/program.h"

namespace normlab::trainer {
namespace {

double Variance(Program& program, Value value) {
  const int64_t count = value.rows() * value.width();
  const float* data = program.Data(value);
  double mean = 0;
  for (int64_t i = 0; i < count; ++i) mean += data[i];
  mean /= static_cast<double>(count);
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += (data[i] - mean) * (data[i] - mean);
  return squares / static_cast<double>(count);
}

}  // namespace

void ProfileAdmin(const TrainingSettings& settings, ParameterTable& parameters,
                  std::span<float> weights, const Batch& batch) {
  Program program(parameters, settings.batch_size, settings.sequence_length);
  const Model model = RecordModel(settings, program);
  Buffer gradients(parameters.buffer_size());  // a program has them; nothing goes back
  program.Finish(weights.data(), gradients.data());
  program.inputs() = batch;
  program.set_training(false);

  double r = 1;
  int next = 0;
  for (const BlockTaps& block : model.blocks) {
    for (const ScaledSumTap& sum : block.scaled_sums) {
      const Parameter& omega = parameters[sum.omega];
      std::fill_n(weights.data() + omega.offset, omega.count, static_cast<float>(r));
      next = program.ForwardThrough(next, sum.branch);
      r = std::sqrt(r * r * Variance(program, sum.x) + Variance(program, sum.branch));
    }
  }
}

}  // namespace normlab::trainer
