// Looks at a model from outside, on a batch of its own: how attention is spread, and how far each
// block is from the identity.
//
//   Probes probes(settings, learner);                  // at any step
//   observer.OnSeries(probes.names());
//   const std::vector<double>& values = probes.Measure();   // before a step's update
//
// Only reads the weights: training is bit for bit the same without it. It holds programs and
// gradients of its own, so make it when something is to be measured and not before.
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_PROBES_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_PROBES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/model.h"
#include "server/trainer/model/program.h"
#include "server/trainer/train/learner.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// The Jacobian J = dx'/dx of a block at one input, seen through products with vectors.
struct JacobianGauge {
  double gain = 0;      // mean of |J^T v| / |v| over random v
  double largest = 0;   // largest singular value
  double distance = 0;  // mean of |(J - I)^T v| / |v|: 0 for the identity
};

// One block recorded alone, between an input and a gradient that are set from outside.
class BlockGauge {
 public:
  using Record = std::function<Value(Value)>;

  // Records `part` over [batch, time, width]. `weights` is the flat parameter buffer. Gradients of
  // parameters are not looked at: they are added to `unused`, as large as the weights, which
  // several gauges may share. Buffers and table outlive the gauge. Building it allocates; measuring
  // does not.
  BlockGauge(ParameterTable& parameters, const float* weights, float* unused, int64_t batch,
             int64_t time, int64_t width, const Record& part);

  // At the input x [batch * time * width]. The products with J^T are exact derivatives; for the
  // power iteration products with J are central differences of the block, which enter only the
  // direction: the value itself is a product with J^T. Same seed, same numbers.
  JacobianGauge Measure(std::span<const float> x, int64_t seed);

  // J^T v at the input x.
  std::vector<float> TransposedProduct(std::span<const float> x, std::span<const float> v);

 private:
  class Input;
  class Output;

  void Evaluate(std::span<const float> x);
  // out = J^T v at the last input evaluated.
  void PullBack(std::span<const float> v, std::span<float> out);
  // out = J u at x, by differences.
  void Product(std::span<const float> x, std::span<const float> u, std::span<float> out);
  double LargestSingularValue(std::span<const float> x, std::vector<float> v);

  Program program_;
  std::vector<float> input_;
  std::vector<float> input_gradient_;
  std::vector<float> output_;
  std::vector<float> output_gradient_;
};

// For each block ("block/3/..."):
//   attention_entropy    mean over heads and positions, in nats; 0 when one key gets everything
//   attention_max_score  largest q.k / sqrt(width of a head) among visible pairs
//   angular_distance     arccos(cosine of x and x') / pi, mean over tokens: 0 where they point the
//                        same way, 0.5 where orthogonal
//   jacobian_gain, jacobian_largest, jacobian_distance   see JacobianGauge
// and for the model: log_z, the mean of log sum exp(logits).
//
// Attention is left out where it is not softmax over one q, k, v; the Jacobian where a block has
// more inputs than x (Transformer-XL's memory, a decoder's encoder).
class Probes {
 public:
  // The learner outlives it. Throws std::runtime_error when the batch cannot be drawn.
  Probes(const TrainingSettings& settings, Learner& learner);

  const std::vector<std::string>& names() const { return names_; }

  // In the order of names().
  const std::vector<double>& Measure();

 private:
  bool HasAttention() const;
  bool HasJacobian() const;
  void MeasureBlock(size_t block);

  const TrainingSettings settings_;  // the run's, with a small batch on one thread
  Learner& learner_;
  std::vector<std::string> names_;
  std::vector<double> values_;
  std::unique_ptr<Program> program_;
  Model model_;
  Buffer gradients_;  // of the parameters, from all programs here: not looked at
  std::vector<std::unique_ptr<BlockGauge>> gauges_;
};

// The parts, for tests.
struct AttentionStatistics {
  double entropy = 0;
  double max_score = 0;
};
// qkv [batch, time, 3 width].
AttentionStatistics MeasureAttention(const float* qkv, int64_t batch, int64_t time, int64_t width,
                                     int64_t heads, bool causal);
// a and b [rows, width].
double AngularDistance(const float* a, const float* b, int64_t rows, int64_t width);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_PROBES_H_
