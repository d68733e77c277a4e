#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// Position t: sin and cos of t / 10000^(2i / width) in columns 2i and 2i + 1.
std::vector<float> Sinusoids(int64_t time, int64_t width) {
  std::vector<float> table(static_cast<size_t>(time * width));
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      const double exponent = static_cast<double>(c / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      table[static_cast<size_t>(t * width + c)] =
          static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

// y[b, t] = input[b, t] + position[t], where the input is the table's row of the token, or numbers
// of the batch, and either kind of position may be missing.
class EmbeddingComponent final : public Component {
 public:
  EmbeddingComponent(Input input, std::optional<ParameterTable::Id> table,
                     std::optional<ParameterTable::Id> learned_positions,
                     std::vector<float> fixed_positions, Value y)
      : input_(input),
        table_(table),
        learned_positions_(learned_positions),
        fixed_positions_(std::move(fixed_positions)),
        y_(y),
        width_(y.width()) {}

  void Bind(Program& program) override {
    program_ = &program;
    y_data_ = program.Data(y_);
    y_gradient_ = program.GradientOf(y_);
  }

  void Forward() override {
    const float* positions = Positions();
    for (int64_t row = 0; row < program_->rows(); ++row) {
      const float* input = InputRow(row);
      float* y = y_data_ + row * width_;
      if (positions == nullptr) {
        program_->kernels().copy(input, width_, false, y);
      } else {
        program_->kernels().add(input, positions + Time(row) * width_, width_, y);
      }
    }
  }

  void Backward() override {
    for (int64_t row = 0; row < program_->rows(); ++row) {
      const float* gradient = y_gradient_ + row * width_;
      if (table_) AddTo(*table_, Token(row), gradient);
      if (learned_positions_) AddTo(*learned_positions_, Time(row), gradient);
    }
  }

 private:
  int64_t Time(int64_t row) const { return row % program_->time(); }

  int64_t Token(int64_t row) const {
    const Batch& batch = program_->inputs();
    return (input_ == Input::kSource ? batch.source : batch.tokens)[static_cast<size_t>(row)];
  }

  const float* InputRow(int64_t row) const {
    if (!table_) return program_->inputs().inputs.data() + row * width_;
    return program_->Weights(*table_) + Token(row) * width_;
  }

  const float* Positions() const {
    if (learned_positions_) return program_->Weights(*learned_positions_);
    return fixed_positions_.empty() ? nullptr : fixed_positions_.data();
  }

  void AddTo(ParameterTable::Id id, int64_t row, const float* gradient) {
    program_->kernels().copy(gradient, width_, true, program_->WeightGradient(id) + row * width_);
  }

  const Input input_;
  const std::optional<ParameterTable::Id> table_;
  const std::optional<ParameterTable::Id> learned_positions_;
  const std::vector<float> fixed_positions_;
  const Value y_;
  const int64_t width_;
  Program* program_ = nullptr;
  float* y_data_ = nullptr;
  const float* y_gradient_ = nullptr;
};

}  // namespace

Value Embed(Program& program, Input input, Positions positions, int64_t vocab, int64_t width,
            bool tied) {
  ParameterTable& parameters = program.parameters();
  const std::string prefix = input == Input::kSource ? "source_" : "";
  std::optional<ParameterTable::Id> table;
  if (input != Input::kNumbers) {
    table = parameters.Declare(prefix + "embedding/embedding", {vocab, width},
                               tied ? Role::kTiedEmbedding : Role::kEmbedding);
  }
  std::optional<ParameterTable::Id> learned;
  std::vector<float> fixed;
  if (positions == Positions::kLearned) {
    learned = parameters.Declare(prefix + "position", {1, program.time(), width}, Role::kPositions);
  } else if (positions == Positions::kSinusoidal) {
    fixed = Sinusoids(program.time(), width);
  }
  const Value y = program.NewValue(width);
  Record<EmbeddingComponent>(program, input, table, learned, std::move(fixed), y);
  return y;
}

}  // namespace normlab::trainer
