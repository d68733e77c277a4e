#include "server/trainer/train/probes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "server/trainer/model/flax_random.h"
#include "server/trainer/model/placement/placement.h"
#include "server/trainer/train/data.h"
#include "server/trainer/train/diagnostics.h"

namespace normlab::trainer {
namespace {

constexpr int64_t kProbeSequences = 4;
constexpr int64_t kProbeSeed = 1'000'003;  // away from the seeds of training data
constexpr int kRandomVectors = 8;
constexpr int kPowerIterations = 24;

TrainingSettings ProbeSettings(TrainingSettings settings) {
  settings.batch_size = std::min(settings.batch_size, kProbeSequences);
  settings.seed += kProbeSeed;
  settings.threads = 1;
  return settings;
}

double Norm(std::span<const float> v) {
  return std::sqrt(BestKernels().sum_of_squares(v.data(), static_cast<long>(v.size())));
}

void ScaleTo(std::span<float> v, double norm) {
  const double factor = norm / Norm(v);
  for (float& x : v) x = static_cast<float>(x * factor);
}

std::vector<float> RandomVector(size_t count, int64_t seed, int number) {
  std::vector<float> v(count);
  FillNormal(ParameterKey(RootKey(seed), "gauge" + std::to_string(number)), 1.0f, v);
  return v;
}

}  // namespace

// Hands the input to the block and keeps the gradient that comes back.
class BlockGauge::Input final : public Component {
 public:
  Input(const std::vector<float>& values, Value y, std::vector<float>& gradient)
      : values_(values), y_(y), gradient_(gradient) {}

  void Bind(Program& program) override {
    data_ = program.Data(y_);
    incoming_ = program.GradientOf(y_);
  }
  void Forward() override { std::ranges::copy(values_, data_); }
  void Backward() override { std::copy_n(incoming_, gradient_.size(), gradient_.begin()); }

 private:
  const std::vector<float>& values_;
  const Value y_;
  std::vector<float>& gradient_;
  float* data_ = nullptr;
  const float* incoming_ = nullptr;
};

// Keeps the block's output and sends a gradient back.
class BlockGauge::Output final : public Component {
 public:
  Output(Value x, std::vector<float>& values, const std::vector<float>& gradient)
      : x_(x), values_(values), gradient_(gradient) {}

  void Bind(Program& program) override {
    data_ = program.Data(x_);
    outgoing_ = program.AddGradient(x_);
  }
  void Forward() override { std::copy_n(data_, values_.size(), values_.begin()); }
  void Backward() override {
    BestKernels().copy(gradient_.data(), static_cast<long>(gradient_.size()), outgoing_.accumulate,
                       outgoing_.data);
  }

 private:
  const Value x_;
  std::vector<float>& values_;
  const std::vector<float>& gradient_;
  const float* data_ = nullptr;
  GradientSlot outgoing_;
};

BlockGauge::BlockGauge(ParameterTable& parameters, const float* weights, float* unused,
                       int64_t batch, int64_t time, int64_t width, const Record& part)
    : program_(parameters, batch, time) {
  const auto count = static_cast<size_t>(program_.rows() * width);
  for (std::vector<float>* v : {&input_, &input_gradient_, &output_, &output_gradient_}) {
    v->resize(count);
  }
  program_.set_training(false);
  const Value x = program_.NewValue(width);
  trainer::Record<Input>(program_, input_, x, input_gradient_);
  trainer::Record<Output>(program_, part(x), output_, output_gradient_);
  program_.Finish(weights, unused);
}

void BlockGauge::Evaluate(std::span<const float> x) {
  std::ranges::copy(x, input_.begin());
  program_.Forward();
}

void BlockGauge::PullBack(std::span<const float> v, std::span<float> out) {
  std::ranges::copy(v, output_gradient_.begin());
  program_.Backward();
  std::ranges::copy(input_gradient_, out.begin());
}

void BlockGauge::Product(std::span<const float> x, std::span<const float> u, std::span<float> out) {
  // A step of a thousandth of the input's size: truncation and rounding both near 1e-4.
  const double step = 1e-3 * std::max(Norm(x), 1e-30) / Norm(u);
  std::vector<float> moved(x.size());
  const auto evaluate_at = [&](double distance) {
    for (size_t i = 0; i < x.size(); ++i) moved[i] = static_cast<float>(x[i] + distance * u[i]);
    Evaluate(moved);
  };
  evaluate_at(step);
  std::ranges::copy(output_, out.begin());
  evaluate_at(-step);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>((static_cast<double>(out[i]) - output_[i]) / (2 * step));
  }
}

// Power iteration on J J^T: u = J^T v, v = J u. With v of length 1, |J^T v| only grows towards the
// largest singular value.
double BlockGauge::LargestSingularValue(std::span<const float> x, std::vector<float> v) {
  std::vector<float> u(v.size());
  double largest = 0;
  for (int i = 0; i < kPowerIterations; ++i) {
    ScaleTo(v, 1);
    Evaluate(x);
    PullBack(v, u);
    const double length = Norm(u);
    if (!(length > 0)) return length;  // nothing passes, or a number is not finite
    largest = std::max(largest, length);
    Product(x, u, v);
    if (!(Norm(v) > 0)) break;
  }
  return largest;
}

std::vector<float> BlockGauge::TransposedProduct(std::span<const float> x,
                                                 std::span<const float> v) {
  std::vector<float> out(x.size());
  Evaluate(x);
  PullBack(v, out);
  return out;
}

JacobianGauge BlockGauge::Measure(std::span<const float> x, int64_t seed) {
  JacobianGauge gauge;
  std::vector<float> product(x.size());
  std::vector<float> first;
  Evaluate(x);
  for (int i = 0; i < kRandomVectors; ++i) {
    std::vector<float> v = RandomVector(x.size(), seed, i);
    PullBack(v, product);
    const double length = Norm(v);
    gauge.gain += Norm(product) / length / kRandomVectors;
    for (size_t k = 0; k < v.size(); ++k) product[k] -= v[k];
    gauge.distance += Norm(product) / length / kRandomVectors;
    if (i == 0) first = std::move(v);
  }
  gauge.largest = LargestSingularValue(x, std::move(first));
  return gauge;
}

Probes::Probes(const TrainingSettings& settings, Learner& learner)
    : settings_(ProbeSettings(settings)), learner_(learner) {
  ParameterTable& parameters = learner.parameters();
  const int64_t batch = settings_.batch_size;
  const int64_t time = settings_.sequence_length;
  program_ = std::make_unique<Program>(parameters, batch, time);
  program_->set_training(false);
  model_ = RecordModel(settings_, *program_);
  gradients_ = Buffer(parameters.buffer_size());
  program_->Finish(learner.weights().data(), gradients_.data());
  MakeDataSource(settings_)->Next(program_->inputs());
  for (size_t i = 0; i < model_.blocks.size(); ++i) {
    const std::string block = BlockSeriesName(model_.blocks[i].path);
    if (HasAttention()) {
      names_.push_back(block + "/attention_entropy");
      names_.push_back(block + "/attention_max_score");
    }
    names_.push_back(block + "/angular_distance");
    if (!HasJacobian()) continue;
    for (const char* name : {"gain", "largest", "distance"}) {
      names_.push_back(block + "/jacobian_" + name);
    }
    gauges_.push_back(std::make_unique<BlockGauge>(
        parameters, learner.weights().data(), gradients_.data(), batch, time, settings_.d_model,
        [&](Value x) {
          const Block alone(settings_, static_cast<int64_t>(i));
          return FindPlacement(settings_.placement).RecordBlock(alone, x);
        }));
  }
  names_.emplace_back("log_z");
}

bool Probes::HasAttention() const {
  return settings_.model == "decoder" && settings_.attention == "softmax";
}

bool Probes::HasJacobian() const { return settings_.model == "decoder"; }

const std::vector<double>& Probes::Measure() {
  learner_.DownloadWeights();
  values_.clear();
  program_->Forward();
  for (size_t i = 0; i < model_.blocks.size(); ++i) MeasureBlock(i);
  const int64_t classes = model_.logits.width();
  const float* logits = program_->Data(model_.logits);
  double sum = 0;
  for (int64_t row = 0; row < model_.logits.rows(); ++row, logits += classes) {
    const double highest = *std::max_element(logits, logits + classes);
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(logits[c] - highest);
    sum += highest + std::log(total);
  }
  values_.push_back(sum / static_cast<double>(model_.logits.rows()));
  return values_;
}

void Probes::MeasureBlock(size_t block) {
  const BlockTaps& taps = model_.blocks[block];
  const float* x = program_->Data(taps.input);
  const int64_t d = settings_.d_model;
  if (HasAttention()) {
    const AttentionStatistics attention =
        MeasureAttention(program_->Data(taps.qkv), program_->batch(), program_->time(), d,
                         settings_.heads, settings_.causal);
    values_.push_back(attention.entropy);
    values_.push_back(attention.max_score);
  }
  values_.push_back(AngularDistance(x, program_->Data(taps.output), program_->rows(), d));
  if (!HasJacobian()) return;
  const JacobianGauge gauge =
      gauges_[block]->Measure({x, static_cast<size_t>(program_->rows() * d)}, settings_.seed);
  values_.insert(values_.end(), {gauge.gain, gauge.largest, gauge.distance});
}

AttentionStatistics MeasureAttention(const float* qkv, int64_t batch, int64_t time, int64_t width,
                                     int64_t heads, bool causal) {
  const int64_t head_width = width / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  AttentionStatistics result{.entropy = 0, .max_score = -std::numeric_limits<double>::infinity()};
  std::vector<double> scores(static_cast<size_t>(time));
  const auto row = [&](int64_t b, int64_t t) { return qkv + (b * time + t) * 3 * width; };
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t t = 0; t < time; ++t) {
        const float* q = row(b, t) + h * head_width;
        const int64_t visible = causal ? t + 1 : time;
        for (int64_t s = 0; s < visible; ++s) {
          const float* k = row(b, s) + width + h * head_width;
          scores[static_cast<size_t>(s)] = scale * std::inner_product(q, q + head_width, k, 0.0);
        }
        const std::span<double> seen(scores.data(), static_cast<size_t>(visible));
        const double highest = *std::ranges::max_element(seen);
        double total = 0;
        double weighted = 0;  // sum of e^s (s - highest)
        for (const double score : seen) {
          const double e = std::exp(score - highest);
          total += e;
          weighted += e * (score - highest);
        }
        result.entropy += std::log(total) - weighted / total;
        result.max_score = std::max(result.max_score, highest);
      }
    }
  }
  result.entropy /= static_cast<double>(batch * heads * time);
  return result;
}

double AngularDistance(const float* a, const float* b, int64_t rows, int64_t width) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r, a += width, b += width) {
    const double dot = std::inner_product(a, a + width, b, 0.0);
    const double a_square = std::inner_product(a, a + width, a, 0.0);
    const double b_square = std::inner_product(b, b + width, b, 0.0);
    // Rounding may leave the cosine just outside of [-1, 1].
    sum += std::acos(std::clamp(dot / std::sqrt(a_square * b_square), -1.0, 1.0));
  }
  return sum / static_cast<double>(rows) / std::numbers::pi;
}

}  // namespace normlab::trainer
