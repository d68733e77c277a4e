// A whole model run once: weights drawn, a batch in, logits and gradients out.
#ifndef NORMLAB_TESTS_UNIT_TRAINER_MODEL_RUN_H_
#define NORMLAB_TESTS_UNIT_TRAINER_MODEL_RUN_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/trainer/model/buffer.h"
#include "server/trainer/model/model.h"
#include "server/trainer/model/program.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {

// A model of a few thousand parameters in which nothing is a whole vector.
inline TrainingSettings SmallModel() {
  TrainingSettings settings;
  settings.layers = 2;
  settings.decoder_layers = 2;
  settings.d_model = 12;
  settings.heads = 2;
  settings.ffn_width = 20;
  settings.vocab_size = 11;
  settings.sequence_length = 7;
  settings.batch_size = 3;
  return settings;
}

inline TrainingSettings SmallXl(int64_t memory_length) {
  TrainingSettings settings = SmallModel();
  settings.model = "xl";
  settings.positions = "none";
  settings.memory_length = memory_length;
  settings.table_length = memory_length + settings.sequence_length;
  return settings;
}

inline TrainingSettings SmallEncoderDecoder(std::string_view placement) {
  TrainingSettings settings = SmallModel();
  settings.model = "encdec";
  settings.placement = placement;
  settings.final_norm = placement == "pre";
  settings.data = "copy";
  return settings;
}

class ModelRun {
 public:
  explicit ModelRun(const TrainingSettings& settings, uint32_t seed = 3)
      : settings_(settings),
        program_(table_, settings.batch_size, settings.sequence_length),
        model_(RecordModel(settings_, program_)),
        weights_(table_.buffer_size()),
        gradients_(table_.buffer_size()) {
    program_.Finish(weights_.data(), gradients_.data());
    std::ranges::copy(RandomValues(table_.buffer_size(), seed, 0.3f), weights_.data());
    for (int32_t i = 0; i < static_cast<int32_t>(program_.rows()); ++i) {
      const auto vocab = static_cast<int32_t>(settings.vocab_size);
      program_.tokens()[static_cast<size_t>(i)] = (i * 7 + i / 5) % vocab;
      program_.targets()[static_cast<size_t>(i)] = i * 5 % vocab;
      program_.inputs().source.push_back((i * 3 + 1) % vocab);
    }
    if (settings.data == "gaussian") {
      program_.inputs().inputs = RandomValues(program_.rows() * settings.d_model, 9);
    }
  }

  // Logits [rows, vocab] of the batch.
  std::vector<float> Forward() {
    program_.Forward();
    const float* logits = program_.Data(model_.logits);
    return {logits, logits + program_.rows() * model_.logits.width()};
  }

  // From 0; returns the logits.
  std::vector<float> ForwardAndBack() {
    std::ranges::fill(gradients_.span(), 0.0f);
    std::vector<float> logits = Forward();
    program_.Backward();
    return logits;
  }

  Program& program() { return program_; }
  ParameterTable& table() { return table_; }
  std::span<float> all_weights() { return weights_.span(); }
  std::span<const float> all_gradients() const { return gradients_.span(); }
  std::span<float> weights(std::string_view path) { return Part(weights_, path); }
  std::span<float> gradient(std::string_view path) { return Part(gradients_, path); }

 private:
  std::span<float> Part(Buffer& buffer, std::string_view path) {
    const Parameter& parameter = table_[table_.Find(path)];
    return buffer.span().subspan(static_cast<size_t>(parameter.offset),
                                 static_cast<size_t>(parameter.count));
  }

  const TrainingSettings settings_;
  ParameterTable table_;
  Program program_;
  Model model_;
  Buffer weights_;
  Buffer gradients_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_UNIT_TRAINER_MODEL_RUN_H_
