#include "server/trainer/train/data.h"

#include <stdexcept>
#include <string>

#include "server/trainer/train/numpy_random.h"

namespace normlab::trainer {
namespace {

// The article's data are seeded apart from its weights.
constexpr int64_t kDataSeedOffset = 116;

uint64_t DataSeed(int64_t seed) {
  if (seed < -kDataSeedOffset) {
    throw std::runtime_error("seed must be at least " + std::to_string(-kDataSeedOffset) +
                             ", not " + std::to_string(seed));
  }
  return static_cast<uint64_t>(seed) + static_cast<uint64_t>(kDataSeedOffset);
}

// Token t of a row is (start + t) mod vocab; only the starts are random.
class ArithmeticData final : public DataSource {
 public:
  explicit ArithmeticData(const TrainingSettings& settings)
      : random_(DataSeed(settings.seed)),
        vocab_(static_cast<uint32_t>(settings.vocab_size)),
        time_(static_cast<size_t>(settings.sequence_length)),
        rows_(static_cast<size_t>(settings.batch_size) * time_) {}

  void Next(Batch& batch) override {
    batch.tokens.resize(rows_);
    batch.targets.resize(rows_);
    for (size_t row = 0; row < rows_; row += time_) {
      const uint64_t start = random_.Below(vocab_);
      for (size_t t = 0; t < time_; ++t) {
        batch.tokens[row + t] = static_cast<int32_t>((start + t) % vocab_);
        batch.targets[row + t] = static_cast<int32_t>((start + t + 1) % vocab_);
      }
    }
  }

 private:
  NumpyRandom random_;
  const uint32_t vocab_;
  const size_t time_;
  const size_t rows_;
};

}  // namespace

std::unique_ptr<DataSource> MakeDataSource(const TrainingSettings& settings) {
  if (settings.data == "arithmetic") return std::make_unique<ArithmeticData>(settings);
  throw std::runtime_error("data \"" + settings.data + "\" is not known; known are arithmetic");
}

}  // namespace normlab::trainer
