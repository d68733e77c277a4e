#include "server/trainer/model/components/components.h"

namespace normlab::trainer {
namespace {

// y[b, t] = table[token[b, t]] + position[t].
class EmbeddingComponent final : public Component {
 public:
  EmbeddingComponent(ParameterTable::Id table, ParameterTable::Id positions, Value y)
      : table_(table), positions_(positions), y_(y), width_(y.width()) {}

  void Bind(Program& program) override {
    program_ = &program;
    y_data_ = program.Data(y_);
    y_gradient_ = program.GradientOf(y_);
  }

  void Forward() override {
    const float* table = program_->Weights(table_);
    const float* positions = program_->Weights(positions_);
    for (int64_t row = 0; row < program_->rows(); ++row) {
      program_->kernels().add(table + Token(row) * width_, positions + Time(row) * width_, width_,
                              y_data_ + row * width_);
    }
  }

  void Backward() override {
    float* table = program_->WeightGradient(table_);
    float* positions = program_->WeightGradient(positions_);
    for (int64_t row = 0; row < program_->rows(); ++row) {
      const float* gradient = y_gradient_ + row * width_;
      program_->kernels().copy(gradient, width_, true, table + Token(row) * width_);
      program_->kernels().copy(gradient, width_, true, positions + Time(row) * width_);
    }
  }

 private:
  int64_t Token(int64_t row) const { return program_->tokens()[static_cast<size_t>(row)]; }
  int64_t Time(int64_t row) const { return row % program_->time(); }

  const ParameterTable::Id table_;
  const ParameterTable::Id positions_;
  const Value y_;
  const int64_t width_;
  Program* program_ = nullptr;
  float* y_data_ = nullptr;
  const float* y_gradient_ = nullptr;
};

}  // namespace

Value Embed(Program& program, int64_t vocab, int64_t width, bool tied) {
  ParameterTable& parameters = program.parameters();
  const auto table = parameters.Declare("embedding/embedding", {vocab, width},
                                        tied ? Role::kTiedEmbedding : Role::kEmbedding);
  const auto positions =
      parameters.Declare("position", {1, program.time(), width}, Role::kPositions);
  const Value y = program.NewValue(width);
  Record<EmbeddingComponent>(program, table, positions, y);
  return y;
}

}  // namespace normlab::trainer
