#include "server/trainer/model/model.h"

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "server/trainer/model/choices.h"
#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/memory.h"
#include "server/trainer/model/components/switch.h"
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

// Which models a run's parts go with.
void CheckTransformerXl(const TrainingSettings& s) {
  Require(s.placement == "pre", "placement must be pre with model xl, not \"" + s.placement + "\"");
  Require(
      s.positions == "none",
      "positions must be none with model xl, which has relative ones, not \"" + s.positions + "\"");
  Require(s.attention == "softmax" && s.qk_norm == "off" && s.causal,
          "model xl needs attention softmax, qk_norm off and causal on");
  Require(s.memory_length >= 0,
          "memory_length must be at least 0, not " + std::to_string(s.memory_length));
  CheckPositive("table_length", s.table_length);
  Require(s.accumulate == 1,
          "accumulate must be 1 with model xl, which remembers one batch a step");
  Require(s.data != "gaussian", "data gaussian does not go with model xl");
}

void CheckEncoderDecoder(const TrainingSettings& s) {
  Require(s.placement == "pre" || s.placement == "post" || s.placement == "deepnorm",
          "placement must be pre, post or deepnorm with model encdec, not \"" + s.placement + "\"");
  Require(s.attention == "softmax" && s.qk_norm == "off" && s.causal,
          "model encdec needs attention softmax, qk_norm off and causal on");
  Require(s.ffn == "dense", "ffn must be dense with model encdec, not \"" + s.ffn + "\"");
  Require(s.data == "copy" || s.data == "reverse",
          "data must be copy or reverse with model encdec, which reads a source, not \"" + s.data +
              "\"");
  Require(!s.tie_embeddings,
          "tie_embeddings does not go with model encdec, which has two embeddings");
  CheckPositive("decoder_layers", s.decoder_layers);
}

void CheckSwitch(const TrainingSettings& s) {
  CheckChoice("switch_overflow", s.switch_overflow, {"drop", "pass"});
  CheckPositive("experts", s.experts);
  Require(s.placement != "normformer",
          "placement normformer has a norm inside the feed-forward part: it does not go with ffn "
          "switch");
  const int64_t tokens = s.batch_size * s.sequence_length;
  Require(SwitchCapacity(s.capacity_factor, tokens, s.experts) >= 1,
          "capacity_factor leaves no room in an expert: floor(" +
              std::to_string(s.capacity_factor) + " x " + std::to_string(tokens) + " tokens / " +
              std::to_string(s.experts) + " experts) is 0");
}

// What is written for the host's memory only.
void CheckDevice(const TrainingSettings& s, const Program& program) {
  if (program.device() == nullptr) return;
  const auto require = [&](const char* name, const std::string& value, const char* only) {
    Require(value == only, std::string(name) + " \"" + value +
                               "\" runs on the CPU only; on device \"" + s.device + "\" it is " +
                               only);
  };
  require("model", s.model, "decoder");
  require("ffn", s.ffn, "dense");
  require("precision", s.precision, "fp32");
}

// The blocks of a stack; their taps are part of the model.
std::vector<Block> MakeBlocks(const TrainingSettings& settings, std::span<BlockTaps> taps,
                              const Surroundings& surroundings) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < taps.size(); ++i) {
    blocks.emplace_back(settings, static_cast<int64_t>(i), &taps[i], surroundings);
  }
  return blocks;
}

// Blocks and final norm.
Value RecordStack(const TrainingSettings& settings, std::span<const Block> blocks,
                  std::string_view final_norm, Value embedded) {
  const Value x = Dropout(settings.dropout, settings.seed, embedded);
  const Value y = FindPlacement(settings.placement).RecordStack(blocks, x);
  return settings.final_norm ? RecordNorm(settings, final_norm, y) : y;
}

Value RecordEncoder(const TrainingSettings& settings, std::span<BlockTaps> taps, Program& program) {
  const Value embedded =
      Embed(program, Input::kSource, PositionsOf(settings), settings.vocab_size, settings.d_model);
  const std::vector<Block> blocks = MakeBlocks(settings, taps, {.part = Part::kEncoder});
  return RecordStack(settings, blocks, "encoder_final_norm", embedded);
}

}  // namespace

Model RecordModel(const TrainingSettings& settings, Program& program) {
  CheckModelSettings(settings);
  CheckDevice(settings, program);
  program.set_precision(settings.precision == "bf16" ? Precision::kBf16 : Precision::kFp32);
  Model model;
  const bool has_encoder = settings.model == "encdec";
  const auto encoder_layers = static_cast<size_t>(has_encoder ? settings.layers : 0);
  const auto layers = static_cast<size_t>(has_encoder ? settings.decoder_layers : settings.layers);
  model.blocks.resize(encoder_layers + layers);
  const std::span<BlockTaps> taps(model.blocks);
  Surroundings surroundings;
  if (has_encoder) {
    const Value encoded = RecordEncoder(settings, taps.first(encoder_layers), program);
    surroundings = {.part = Part::kDecoder, .encoded = encoded};
  }
  if (settings.model == "xl" && settings.memory_length > 0) {
    surroundings.memory_filled = MemoryFilled(settings.memory_length, program);
  }
  const Input input = settings.data == "gaussian" ? Input::kNumbers : Input::kTokens;
  model.embedded = Embed(program, input, PositionsOf(settings), settings.vocab_size,
                         settings.d_model, settings.tie_embeddings);
  const std::vector<Block> blocks = MakeBlocks(settings, taps.last(layers), surroundings);
  const Value x = RecordStack(settings, blocks, "final_norm", model.embedded);
  model.logits = settings.tie_embeddings
                     ? TiedHead(program.parameters().Find("embedding/embedding"), x)
                     : Linear("output", settings.vocab_size, Role::kHead, false, x);
  SoftmaxCrossEntropy(model.logits);
  return model;
}

void CheckModelSettings(const TrainingSettings& settings) {
  CheckChoice("model", settings.model, {"decoder", "xl", "encdec"});
  CheckChoice("norm", settings.norm, {"layernorm", "rmsnorm", "dyt"});
  CheckChoice("qk_norm", settings.qk_norm, {"off", "rms-head", "rms-full"});
  CheckChoice("ffn", settings.ffn, {"dense", "switch"});
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
  CheckChoice("precision", settings.precision, {"fp32", "bf16"});
  CheckAttention(settings);
  if (settings.model == "xl") CheckTransformerXl(settings);
  if (settings.model == "encdec") CheckEncoderDecoder(settings);
  if (settings.ffn == "switch") CheckSwitch(settings);
  Require(settings.data != "gaussian" || !settings.tie_embeddings,
          "tie_embeddings needs an embedding, and data gaussian has none");
  ActivationInputs(settings.activation);
}

}  // namespace normlab::trainer
