#include "server/trainer/train/data.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "server/trainer/model/choices.h"
#include "server/trainer/train/data_tasks.h"

namespace normlab::trainer {
namespace {

// The article's data are seeded apart from its weights.
constexpr int64_t kDataSeedOffset = 116;

uint64_t DataSeed(int64_t seed, uint64_t kind) {
  if (seed < -kDataSeedOffset) {
    throw std::runtime_error("seed must be at least " + std::to_string(-kDataSeedOffset) +
                             ", not " + std::to_string(seed));
  }
  // Seeds go up to 2^53, so the kinds never share a stream.
  return static_cast<uint64_t>(seed + kDataSeedOffset) + (kind << 56);
}

bool Repeats(const TrainingSettings& settings) {
  return settings.data == "copy" || settings.data == "reverse";
}

}  // namespace

RandomData::RandomData(const TrainingSettings& settings, uint64_t kind)
    : batch_(static_cast<size_t>(settings.batch_size)),
      time_(static_cast<size_t>(settings.sequence_length)),
      vocab_(static_cast<uint32_t>(settings.vocab_size)),
      random_(DataSeed(settings.seed, kind)) {}

std::vector<uint64_t> RandomData::State() const {
  const NumpyRandom::State state = random_.Save();
  return {state.begin(), state.end()};
}

void RandomData::Restore(std::span<const uint64_t> state) {
  NumpyRandom::State words;
  if (state.size() != words.size()) {
    throw std::runtime_error("the state of the data has " + std::to_string(state.size()) +
                             " words, not " + std::to_string(words.size()));
  }
  std::ranges::copy(state, words.begin());
  random_.Restore(words);
}

void RequireAtLeast(const TrainingSettings& settings, const char* name, int64_t value,
                    int64_t least) {
  if (value >= least) return;
  throw std::runtime_error("data " + settings.data + " of model " + settings.model + " needs " +
                           name + " of at least " + std::to_string(least) + ", not " +
                           std::to_string(value));
}

std::unique_ptr<DataSource> MakeDataSource(const TrainingSettings& settings) {
  CheckChoice("data", settings.data,
              {"arithmetic", "copy", "reverse", "modular-addition", "gaussian", "text"});
  if (settings.model == "encdec" && !Repeats(settings)) {
    throw std::runtime_error("model encdec learns data copy or reverse, not " + settings.data);
  }
  if (settings.validate_every > 0 && settings.data != "text") {
    throw std::runtime_error("validate_every needs data text: " + settings.data +
                             " holds nothing out");
  }
  if (Repeats(settings)) return MakeRepeatData(settings);
  if (settings.data == "modular-addition") return MakeModularAdditionData(settings);
  if (settings.data == "gaussian") return MakeGaussianData(settings);
  if (settings.data == "text") return MakeTextData(settings);
  return MakeArithmeticData(settings);
}

}  // namespace normlab::trainer
