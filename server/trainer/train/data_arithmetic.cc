// Tasks of counting: arithmetic progressions and modular addition.
#include "server/trainer/train/data_tasks.h"

namespace normlab::trainer {
namespace {

// Token t of a row is (start + t) mod vocab; only the starts are random.
class ArithmeticData final : public RandomData {
 public:
  explicit ArithmeticData(const TrainingSettings& settings) : RandomData(settings, 0) {}

  void Next(Batch& batch) override {
    const size_t rows = batch_ * time_;
    batch.tokens.resize(rows);
    batch.targets.resize(rows);
    for (size_t row = 0; row < rows; row += time_) {
      const uint64_t start = random_.Below(vocab_);
      for (size_t t = 0; t < time_; ++t) {
        batch.tokens[row + t] = static_cast<int32_t>((start + t) % vocab_);
        batch.targets[row + t] = static_cast<int32_t>((start + t + 1) % vocab_);
      }
    }
  }
};

// Problems `a b = c` without gaps; the last one of a row may be cut off.
class ModularAdditionData final : public RandomData {
 public:
  explicit ModularAdditionData(const TrainingSettings& settings) : RandomData(settings, 3) {
    RequireAtLeast(settings, "vocab_size", settings.vocab_size, 3);
    RequireAtLeast(settings, "sequence_length", settings.sequence_length, kAnswer);
  }

  void Next(Batch& batch) override {
    batch.tokens.resize(batch_ * time_);
    batch.targets.assign(batch_ * time_, kIgnored);
    for (size_t row = 0; row < batch_ * time_; row += time_) {
      std::array<int32_t, kLength> problem{};
      for (size_t i = 0; i <= time_; ++i) {  // one token more than fits: the last target
        const size_t place = i % kLength;
        if (place == 0) problem = Draw();
        if (i < time_) batch.tokens[row + i] = problem[place];
        if (place == kAnswer) batch.targets[row + i - 1] = problem[kAnswer];
      }
    }
  }

 private:
  static constexpr size_t kLength = 4;
  static constexpr size_t kAnswer = 3;  // place of c

  std::array<int32_t, kLength> Draw() {
    const uint32_t modulus = vocab_ - 1;
    const uint32_t a = random_.Below(modulus);
    const uint32_t b = random_.Below(modulus);
    return {static_cast<int32_t>(a), static_cast<int32_t>(b), static_cast<int32_t>(modulus),
            static_cast<int32_t>((a + b) % modulus)};
  }
};

}  // namespace

std::unique_ptr<DataSource> MakeArithmeticData(const TrainingSettings& settings) {
  return std::make_unique<ArithmeticData>(settings);
}

std::unique_ptr<DataSource> MakeModularAdditionData(const TrainingSettings& settings) {
  return std::make_unique<ModularAdditionData>(settings);
}

}  // namespace normlab::trainer
