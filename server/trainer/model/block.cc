#include "server/trainer/model/block.h"

#include <stdexcept>

#include "server/trainer/model/components/components.h"

namespace normlab::trainer {

Block::Block(const TrainingSettings& settings, int64_t index, BlockTaps* taps)
    : settings_(settings), index_(index), taps_(taps) {
  if (taps_ != nullptr) taps_->path = "block_" + std::to_string(index_);
}

std::string Block::Path(std::string_view name) const {
  return "block_" + std::to_string(index_) + "/" + std::string(name);
}

Value Block::Heads(Value x) const {
  if (settings_.attention == "uniform") {
    const Value values = Linear(Path("value"), x.width(), Role::kInput, settings_.bias, x);
    return MeanOverVisible(settings_.causal, values);
  }
  Value qkv = Linear(Path("qkv"), 3 * x.width(), Role::kQueryKeyValue, settings_.bias, x);
  if (settings_.qk_norm != "off") qkv = NormQueriesKeys(qkv);
  if (settings_.positions == "rotary") qkv = Rotate(settings_.heads, qkv);
  if (taps_ != nullptr) taps_->qkv = qkv;
  return AttendHeads(settings_.heads, settings_.causal, qkv);
}

Value Block::NormQueriesKeys(Value qkv) const {
  const bool hybrid = settings_.placement == "hybrid" || settings_.placement == "hybrid-star";
  const QueryKeyNormOptions options = {
      .groups = settings_.qk_norm == "rms-head" ? settings_.heads : 1,
      .values = hybrid,
      .gain = settings_.norm_gain,
      .epsilon = settings_.norm_epsilon};
  return QueryKeyNorm(Path(""), options, qkv);
}

Value Block::AttentionOutput(Value heads) const {
  if (settings_.attention == "uniform") return heads;
  const int64_t d = settings_.d_model;
  return Linear(Path("attention_output"), d, Role::kOutput, settings_.bias, heads);
}

Value Block::Hidden(Value x) const {
  const int64_t inputs = ActivationInputs(settings_.activation);
  const Role role = inputs == 2 ? Role::kGatedInput : Role::kInput;
  const int64_t width = inputs * settings_.ffn_width;
  return Activate(settings_.activation, Linear(Path("mlp_in"), width, role, settings_.bias, x));
}

Value Block::FeedForwardOutput(Value hidden) const {
  const int64_t d = settings_.d_model;
  return Linear(Path("mlp_out"), d, Role::kOutput, settings_.bias, hidden);
}

Value Block::Norm(std::string_view name, Value x) const {
  return RecordNorm(settings_, Path(name), x);
}

Value Block::Branch(Value branch) const {
  branch = Dropout(settings_.dropout, settings_.seed, branch);
  if (settings_.residual_scale != 1) branch = settings_.residual_scale * branch;
  if (taps_ != nullptr) taps_->branches.push_back(branch);
  return branch;
}

Value Block::ScaleHeads(std::string_view name, Value heads) const {
  return LearnedScale(Path(name), settings_.heads, 1, heads);
}

Value Block::ScaledSum(std::string_view name, Value x, Value branch) const {
  const std::string path = Path(name);
  const Value scaled = LearnedScale(path, x.width(), 1, x);
  const Value added = Branch(branch);
  if (taps_ != nullptr) {
    taps_->scaled_sums.push_back({x, added, x.program->parameters().Find(path)});
  }
  return scaled + added;
}

void Block::Tap(Value input, Value output) const {
  if (taps_ == nullptr) return;
  taps_->input = input;
  taps_->output = output;
}

Value RecordNorm(const TrainingSettings& settings, std::string_view path, Value x) {
  const bool gain = settings.norm_gain;
  if (settings.norm == "layernorm") return LayerNorm(path, settings.norm_epsilon, x, gain);
  if (settings.norm == "rmsnorm") return RmsNorm(path, settings.norm_epsilon, x, gain);
  if (settings.norm == "dyt") return DyT(path, settings.dyt_alpha, x, gain);
  throw std::runtime_error("unknown norm \"" + settings.norm +
                           "\"; known are layernorm, rmsnorm, dyt");
}

}  // namespace normlab::trainer
