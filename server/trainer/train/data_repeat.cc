// Copying and reversing, in one sequence or from an encoder to a decoder.
#include <algorithm>
#include <numeric>

#include "server/trainer/train/data_tasks.h"

namespace normlab::trainer {
namespace {

uint64_t Kind(const TrainingSettings& settings) { return settings.data == "copy" ? 1 : 2; }

class RepeatBase : public RandomData {
 protected:
  explicit RepeatBase(const TrainingSettings& settings)
      : RandomData(settings, Kind(settings)), backwards_(settings.data == "reverse") {}

  // Token i of the answer to a part of `length` tokens.
  int32_t Answer(const int32_t* part, size_t length, size_t i) const {
    return part[backwards_ ? length - 1 - i : i];
  }

 private:
  const bool backwards_;
};

// A part of n = time / 2 tokens in [0, V - 1), the separator V - 1, the answer. The n targets that
// count are the answer, seen from the separator on; an odd last position is a target of nothing.
class SequenceRepeatData final : public RepeatBase {
 public:
  explicit SequenceRepeatData(const TrainingSettings& settings) : RepeatBase(settings) {
    RequireAtLeast(settings, "vocab_size", settings.vocab_size, 2);
    RequireAtLeast(settings, "sequence_length", settings.sequence_length, 2);
  }

  void Next(Batch& batch) override {
    batch.tokens.resize(batch_ * time_);
    batch.targets.assign(batch_ * time_, kIgnored);
    const size_t n = time_ / 2;
    for (size_t row = 0; row < batch_ * time_; row += time_) {
      int32_t* tokens = &batch.tokens[row];
      for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>(random_.Below(vocab_ - 1));
      tokens[n] = static_cast<int32_t>(vocab_ - 1);
      for (size_t i = 0; i < n; ++i) {
        batch.targets[row + n + i] = Answer(tokens, n, i);
        if (n + 1 + i < time_) tokens[n + 1 + i] = Answer(tokens, n, i);
      }
    }
  }
};

// The source is a part of random length in [1, time - 1], then padding; the decoder is asked for
// the answer and an end token, and sees a begin token and what it should have said before.
class EncoderDecoderRepeatData final : public RepeatBase {
 public:
  explicit EncoderDecoderRepeatData(const TrainingSettings& settings) : RepeatBase(settings) {
    RequireAtLeast(settings, "vocab_size", settings.vocab_size, kFirstContent + 1);
    RequireAtLeast(settings, "sequence_length", settings.sequence_length, 2);
  }

  void Next(Batch& batch) override {
    batch.tokens.assign(batch_ * time_, kPadding);
    batch.targets.assign(batch_ * time_, kIgnored);
    batch.source.assign(batch_ * time_, kPadding);
    batch.source_lengths.resize(batch_);
    for (size_t b = 0; b < batch_; ++b) {
      const size_t length = 1 + random_.Below(static_cast<uint32_t>(time_ - 1));
      batch.source_lengths[b] = static_cast<int32_t>(length);
      int32_t* source = &batch.source[b * time_];
      int32_t* tokens = &batch.tokens[b * time_];
      int32_t* targets = &batch.targets[b * time_];
      for (size_t i = 0; i < length; ++i) {
        source[i] = kFirstContent + static_cast<int32_t>(random_.Below(vocab_ - kFirstContent));
      }
      tokens[0] = kBegin;
      for (size_t i = 0; i < length; ++i) targets[i] = tokens[i + 1] = Answer(source, length, i);
      targets[length] = kEnd;
    }
  }

 private:
  static constexpr int32_t kPadding = 0;
  static constexpr int32_t kBegin = 1;
  static constexpr int32_t kEnd = 2;
  static constexpr int32_t kFirstContent = 3;
};

}  // namespace

std::unique_ptr<DataSource> MakeRepeatData(const TrainingSettings& settings) {
  if (settings.model == "encdec") return std::make_unique<EncoderDecoderRepeatData>(settings);
  return std::make_unique<SequenceRepeatData>(settings);
}

}  // namespace normlab::trainer
