#include "server/trainer/model/block.h"

#include <stdexcept>

#include "server/trainer/model/components/components.h"
#include "server/trainer/model/components/switch.h"

namespace normlab::trainer {

Block::Block(const TrainingSettings& settings, int64_t index, BlockTaps* taps,
             const Surroundings& surroundings)
    : settings_(settings), index_(index), taps_(taps), surroundings_(surroundings) {
  const std::string kind = surroundings_.part == Part::kEncoder ? "encoder_block_" : "block_";
  path_ = kind + std::to_string(index_);
  if (taps_ != nullptr) taps_->path = path_;
}

std::string Block::Path(std::string_view name) const { return path_ + "/" + std::string(name); }

Value Block::AttentionOutput(Value heads) const {
  if (settings_.attention == "uniform") return heads;
  const int64_t d = settings_.d_model;
  return Linear(Path("attention_output"), d, Role::kOutput, settings_.bias, heads);
}

Value Block::FeedForward(Value x) const {
  return settings_.ffn == "switch" ? Experts(x) : FeedForwardOutput(Hidden(x));
}

Value Block::Hidden(Value x) const { return HiddenOf("", x); }

Value Block::FeedForwardOutput(Value hidden) const { return OutputOf("", hidden); }

Value Block::HiddenOf(const std::string& expert, Value x) const {
  const int64_t inputs = ActivationInputs(settings_.activation);
  const Role role = inputs == 2 ? Role::kGatedInput : Role::kInput;
  const int64_t width = inputs * settings_.ffn_width;
  return Activate(settings_.activation,
                  Linear(Path(expert + "mlp_in"), width, role, settings_.bias, x));
}

Value Block::OutputOf(const std::string& expert, Value hidden) const {
  const int64_t d = settings_.d_model;
  return Linear(Path(expert + "mlp_out"), d, Role::kOutput, settings_.bias, hidden);
}

Value Block::Experts(Value x) const {
  const SwitchOptions options = {
      .experts = settings_.experts,
      .capacity = SwitchCapacity(settings_.capacity_factor, x.rows(), settings_.experts),
      .pass = settings_.switch_overflow == "pass",
      .balance_coefficient = settings_.balance_coefficient};
  // In fp32 also in a bf16 run, as in the paper: a choice by rounded numbers is unstable.
  const Value logits =
      Linear(Path("router"), settings_.experts, Role::kInput, false, x, Precision::kFp32);
  return SwitchLayer(options, logits, x, [&](int64_t e, Value inputs) {
    const std::string expert = "expert_" + std::to_string(e) + "/";
    return OutputOf(expert, HiddenOf(expert, inputs));
  });
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
