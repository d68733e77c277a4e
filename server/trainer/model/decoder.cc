#include "server/trainer/model/decoder.h"

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

constexpr float kHeadScale = 0.02f;

void CheckPositive(std::string_view name, int64_t value) {
  if (value >= 1) return;
  throw std::runtime_error(std::string(name) + " must be at least 1, not " + std::to_string(value));
}

void CheckChoice(std::string_view name, std::string_view value,
                 std::initializer_list<std::string_view> choices) {
  std::string known;
  for (const std::string_view choice : choices) {
    if (choice == value) return;
    known += (known.empty() ? "" : ", ") + std::string(choice);
  }
  throw std::runtime_error(std::string(name) + " \"" + std::string(value) +
                           "\" is not known; known are " + known);
}

}  // namespace

Decoder RecordDecoder(const TrainingSettings& settings, int64_t total_rows, Program& program) {
  CheckModelSettings(settings);
  const Placement& placement = FindPlacement(settings.placement);
  Decoder decoder;
  decoder.embedded = Embed(program, settings.vocab_size, settings.d_model);
  Value x = decoder.embedded;
  for (int64_t i = 0; i < settings.layers; ++i) {
    x = placement.RecordBlock(Block(settings, i), x);
  }
  if (settings.final_norm) x = RecordNorm(settings, "final_norm", x);
  decoder.logits = Linear("output", settings.vocab_size, Initializer::Normal(kHeadScale), false, x);
  SoftmaxCrossEntropy(total_rows, decoder.logits);
  return decoder;
}

void CheckModelSettings(const TrainingSettings& settings) {
  CheckChoice("model", settings.model, {"decoder"});
  CheckChoice("norm", settings.norm, {"layernorm", "rmsnorm"});
  CheckChoice("ffn", settings.ffn, {"gelu-tanh"});
  CheckChoice("init", settings.init, {"flax"});
  FindPlacement(settings.placement);
  CheckPositive("layers", settings.layers);
  CheckPositive("d_model", settings.d_model);
  CheckPositive("heads", settings.heads);
  CheckPositive("ffn_width", settings.ffn_width);
  CheckPositive("vocab_size", settings.vocab_size);
  CheckPositive("sequence_length", settings.sequence_length);
  CheckPositive("batch_size", settings.batch_size);
  if (settings.d_model % settings.heads != 0) {
    throw std::runtime_error("heads " + std::to_string(settings.heads) +
                             " does not divide d_model " + std::to_string(settings.d_model));
  }
}

double DecoderFlopsPerStep(const TrainingSettings& s) {
  const auto d = static_cast<double>(s.d_model);
  const auto time = static_cast<double>(s.sequence_length);
  const auto layers = static_cast<double>(s.layers);
  const double block = 4 * d * d + 2 * d * static_cast<double>(s.ffn_width);
  const double head = d * static_cast<double>(s.vocab_size);
  const double attention = d * (time + 1);  // scores and mixing, over (time + 1) / 2 keys each
  const double multiply_adds = layers * (block + attention) + head;
  return 2 * 3 * multiply_adds * time * static_cast<double>(s.batch_size);
}

int64_t ParameterCount(const TrainingSettings& s) {
  CheckModelSettings(s);
  const int64_t d = s.d_model;
  const int64_t attention = (d * 3 * d + 3 * d) + (d * d + d);
  const int64_t feed_forward = (d * s.ffn_width + s.ffn_width) + (s.ffn_width * d + d);
  const int64_t block =
      attention + feed_forward + FindPlacement(s.placement).ExtraParameterCount(s);
  const int64_t ends = s.vocab_size * d + s.sequence_length * d + d * s.vocab_size;
  return ends + s.layers * block + (s.final_norm ? NormParameterCount(s) : 0);
}

}  // namespace normlab::trainer
