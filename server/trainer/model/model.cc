#include "server/trainer/model/model.h"

#include <stdexcept>
#include <string>
#include <string_view>

#include "server/trainer/model/choices.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/placement/placement.h"

namespace normlab::trainer {
namespace {

void CheckPositive(std::string_view name, int64_t value) {
  if (value >= 1) return;
  throw std::runtime_error(std::string(name) + " must be at least 1, not " + std::to_string(value));
}

Positions PositionsOf(const TrainingSettings& settings) {
  if (settings.positions == "learned") return Positions::kLearned;
  if (settings.positions == "sinusoidal") return Positions::kSinusoidal;
  return Positions::kNone;  // rotary ones are in the attention
}

// Throws unless `allowed`.
void Require(bool allowed, const std::string& message) {
  if (!allowed) throw std::runtime_error(message);
}

void CheckAttention(const TrainingSettings& s) {
  CheckChoice("attention", s.attention, {"softmax", "uniform"});
  CheckChoice("positions", s.positions, {"learned", "sinusoidal", "rotary", "none"});
  Require(s.d_model % s.heads == 0, "heads " + std::to_string(s.heads) +
                                        " does not divide d_model " + std::to_string(s.d_model));
  if (s.positions == "rotary") {
    Require(s.d_model / s.heads % 2 == 0,
            "positions \"rotary\" turns pairs of columns: d_model / heads must be even, not " +
                std::to_string(s.d_model / s.heads));
  }
  if (s.attention == "uniform") {
    Require(s.heads == 1,
            "heads must be 1 with attention \"uniform\", whose mean is the same in "
            "every head, not " +
                std::to_string(s.heads));
    Require(s.positions != "rotary" && s.qk_norm == "off",
            "attention \"uniform\" has no queries and keys: it goes with neither positions "
            "\"rotary\" nor qk_norm");
  }
}

}  // namespace

Model RecordModel(const TrainingSettings& settings, Program& program) {
  CheckModelSettings(settings);
  Model model;
  const Input input = settings.data == "gaussian" ? Input::kNumbers : Input::kTokens;
  model.embedded = Embed(program, input, PositionsOf(settings), settings.vocab_size,
                         settings.d_model, settings.tie_embeddings);
  model.blocks.resize(static_cast<size_t>(settings.layers));
  std::vector<Block> blocks;
  for (int64_t i = 0; i < settings.layers; ++i) {
    blocks.emplace_back(settings, i, &model.blocks[static_cast<size_t>(i)]);
  }
  Value x = Dropout(settings.dropout, settings.seed, model.embedded);
  x = FindPlacement(settings.placement).RecordStack(blocks, x);
  if (settings.final_norm) x = RecordNorm(settings, "final_norm", x);
  model.logits = settings.tie_embeddings
                     ? TiedHead(program.parameters().Find("embedding/embedding"), x)
                     : Linear("output", settings.vocab_size, Role::kHead, false, x);
  SoftmaxCrossEntropy(model.logits);
  return model;
}

void CheckModelSettings(const TrainingSettings& settings) {
  CheckChoice("model", settings.model, {"decoder"});
  CheckChoice("norm", settings.norm, {"layernorm", "rmsnorm", "dyt"});
  CheckChoice("qk_norm", settings.qk_norm, {"off", "rms-head", "rms-full"});
  CheckChoice("ffn", settings.ffn, {"dense"});
  CheckChoice("init", settings.init,
              {"flax", "gpt2", "xavier", "torch", "fan-in", "deepnorm", "admin"});
  FindPlacement(settings.placement);
  CheckPositive("layers", settings.layers);
  CheckPositive("d_model", settings.d_model);
  CheckPositive("heads", settings.heads);
  CheckPositive("ffn_width", settings.ffn_width);
  CheckPositive("vocab_size", settings.vocab_size);
  CheckPositive("sequence_length", settings.sequence_length);
  CheckPositive("batch_size", settings.batch_size);
  Require(settings.dropout >= 0 && settings.dropout < 1,
          "dropout must be at least 0 and below 1, not " + std::to_string(settings.dropout));
  CheckAttention(settings);
  ActivationInputs(settings.activation);
}

}  // namespace normlab::trainer
