#include "server/domain/spec.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/model_size.h"
#include "server/domain/settings.h"
#include "server/domain/utf8.h"

namespace normlab::domain {
namespace {

using v1::RunSpec;

bool IsAuto(const std::string& value) { return value.empty() || value == "auto"; }

bool IsOneOf(const std::string& value, std::initializer_list<std::string_view> values) {
  return std::ranges::find(values, value) != values.end();
}

bool IsText(const RunSpec& spec) { return spec.data().starts_with("text:"); }

// What follows from the placement alone.
void ResolvePlacement(RunSpec& spec) {
  const std::string& placement = spec.placement();
  const bool hybrid = IsOneOf(placement, {"hybrid", "hybrid-star"});
  if (IsAuto(spec.norm())) {
    spec.set_norm(hybrid || placement == "olmo2" ? "rmsnorm" : "layernorm");
  }
  if (IsAuto(spec.final_norm())) {
    const bool off = IsOneOf(placement, {"post", "post-single", "deepnorm", "admin", "rezero",
                                         "b2t", "residual-dual", "none"});
    spec.set_final_norm(off ? "off" : "on");
  }
  if (IsAuto(spec.qk_norm())) {
    spec.set_qk_norm(hybrid ? "rms-head" : placement == "olmo2" ? "rms-full" : "off");
  }
  if (IsAuto(spec.init())) {
    spec.set_init(IsOneOf(placement, {"deepnorm", "admin"}) ? placement : "flax");
  }
}

int64_t WarmupSteps(const RunSpec& spec) {
  if (spec.has_warmup_steps()) return spec.warmup_steps();
  if (spec.warmup_fraction() <= 0) return 0;
  const auto steps =
      static_cast<int64_t>(std::floor(spec.warmup_fraction() * static_cast<double>(spec.steps())));
  return std::max<int64_t>(1, steps);
}

// Tokens of a batch that one expert takes.
double SwitchRoom(const RunSpec& spec) {
  const double tokens =
      static_cast<double>(spec.batch_size()) * static_cast<double>(spec.sequence_length());
  return std::floor(spec.capacity_factor() * tokens / static_cast<double>(spec.experts()));
}

// Parts that exclude each other, each with the way out.
void CheckParts(const RunSpec& spec, std::vector<FieldViolation>& wrong) {
  const auto refuse = [&wrong](bool when, const char* field, std::string what) {
    if (when) wrong.push_back({StrCat("spec.", field), std::move(what)});
  };
  const bool xl = spec.model() == "xl";
  const bool encdec = spec.model() == "encdec";
  const bool uniform = spec.attention() == "uniform";
  refuse(xl && spec.placement() != "pre", "placement",
         StrCat("model xl is pre-norm, not ", spec.placement(), "; use placement pre"));
  refuse(encdec && !IsOneOf(spec.placement(), {"pre", "post", "deepnorm"}), "placement",
         StrCat("model encdec has pre, post and deepnorm, not ", spec.placement()));
  refuse(xl && !spec.causal(), "causal", "model xl is causal; leave it on");
  refuse(encdec && !spec.causal(), "causal", "the decoder of encdec is causal; leave it on");
  refuse(encdec && spec.tie_embeddings(), "tie_embeddings",
         "model encdec has two embeddings; leave it off");
  refuse(xl && spec.positions() != "none", "positions",
         "model xl has relative positions of its own; use none");
  refuse(xl && spec.accumulate() > 1, "accumulate",
         "model xl remembers one batch a step; use accumulate 1");
  refuse((xl || encdec) && uniform, "attention", "uniform attention is for model decoder");
  refuse((xl || encdec || uniform) && spec.qk_norm() != "off", "qk_norm",
         "queries and keys are normed in model decoder with softmax attention only; use off");
  refuse(uniform && spec.heads() != 1, "heads",
         "uniform attention gives every head the same mean; use 1");
  refuse(uniform && spec.positions() == "rotary", "positions",
         "rotary positions turn queries and keys, which uniform attention lacks");
  refuse(spec.positions() == "rotary" && (spec.d_model() / spec.heads()) % 2 != 0, "positions",
         "rotary positions turn pairs; make d_model / heads even");
  refuse(spec.ffn() == "switch" && encdec, "ffn", "switch layers are for models decoder and xl");
  refuse(spec.ffn() == "switch" && spec.placement() == "normformer", "ffn",
         "normformer has a norm inside its dense feed-forward layer; use ffn dense");
  refuse(spec.ffn() == "switch" && SwitchRoom(spec) < 1, "capacity_factor",
         "leaves no room in an expert: floor(capacity_factor x tokens / experts) is 0");
  refuse(encdec && !IsOneOf(spec.data(), {"copy", "reverse"}), "data",
         "model encdec reads a source; use data copy or reverse");
  refuse(encdec && spec.vocab_size() < 4, "vocab_size", "copy and reverse need at least 4");
  refuse(encdec && spec.sequence_length() < 2, "sequence_length",
         "a source and an end token need at least 2");
  refuse(spec.data() == "gaussian" && spec.tie_embeddings(), "tie_embeddings",
         "data gaussian has no embedding to tie; leave it off");
  refuse(spec.data() == "gaussian" && xl, "data", "gaussian is for model decoder");
  refuse(spec.data() == "reverse" && !encdec && spec.sequence_length() < 3, "sequence_length",
         "reverse needs at least 3");
  refuse(spec.data() == "copy" && !encdec && spec.sequence_length() < 3, "sequence_length",
         "copy needs at least 3");
  refuse(spec.data() == "modular-addition" && spec.sequence_length() < 3, "sequence_length",
         "modular-addition needs at least 3");
  refuse(spec.data() == "modular-addition" && spec.vocab_size() < 3, "vocab_size",
         "modular-addition needs at least 3");
  refuse(IsText(spec) && spec.text_unit() == "bytes" && spec.vocab_size() < 256, "vocab_size",
         "a text of bytes needs 256");
  refuse(spec.schedule() == "noam" && spec.warmup_steps() == 0, "warmup_steps",
         "schedule noam divides by it; give at least 1");
  refuse(spec.learning_rate_floor() > spec.learning_rate(), "learning_rate_floor",
         "is above learning_rate, where the decay begins; choose a smaller one");
  refuse(spec.init() == "deepnorm" && spec.placement() != "deepnorm", "init",
         "deepnorm is the initialisation of placement deepnorm");
  refuse(spec.init() == "admin" && spec.placement() != "admin", "init",
         "admin is the initialisation of placement admin");
  refuse(spec.norm_gain() == false && spec.norm() == "dyt", "norm_gain",
         "dyt without its gain and bias is not defined; leave it on");
}

void CheckCombinations(const RunSpec& given, const RunSpec& effective,
                       std::vector<FieldViolation>& wrong) {
  if (effective.d_model() % effective.heads() != 0) {
    wrong.push_back({"spec.heads", StrCat(effective.heads(), " heads do not divide d_model ",
                                          effective.d_model(), "; choose a divisor of d_model")});
  }
  for (FieldViolation& violation : CheckNeeds(given, effective)) {
    wrong.push_back(std::move(violation));
  }
  CheckParts(effective, wrong);
  if (given.has_warmup_steps() && given.warmup_fraction() > 0) {
    wrong.push_back({"spec.warmup_fraction",
                     "warmup_steps is given too; give one of the two and leave the other out"});
  }
}

void CheckMachine(const RunSpec& effective, const MachineLimits& limits,
                  std::vector<FieldViolation>& wrong) {
  if (effective.threads() > limits.cpu_threads) {
    wrong.push_back({"spec.threads",
                     StrCat(effective.threads(), " threads are more than the ", limits.cpu_threads,
                            " this machine lends; ask for at most ", limits.cpu_threads)});
  }
  const double needed = MemoryBytes(effective);
  if (limits.memory_bytes > 0 && needed > static_cast<double>(limits.memory_bytes)) {
    wrong.push_back(
        {"spec.d_model", StrCat("training needs about ", std::ceil(needed / (1 << 30)),
                                " GiB and this machine has ", limits.memory_bytes >> 30,
                                " GiB; make layers, d_model, ffn_width, vocab_size, batch_size or "
                                "sequence_length smaller")});
  }
}

}  // namespace

std::vector<FieldViolation> CheckSpec(const RunSpec& given, const MachineLimits& limits) {
  std::vector<FieldViolation> wrong = CheckRanges(given);
  if (!wrong.empty()) return wrong;  // what follows computes with the numbers
  const RunSpec effective = EffectiveSpec(given);
  // What was filled in must be in range as well: 4 x d_model, for example.
  for (FieldViolation& violation : CheckRanges(effective)) wrong.push_back(std::move(violation));
  CheckCombinations(given, effective, wrong);
  if (wrong.empty()) CheckMachine(effective, limits, wrong);
  return wrong;
}

RunSpec EffectiveSpec(const RunSpec& given) {
  RunSpec spec = given;
  FillDefaults(spec);
  ResolvePlacement(spec);
  if (IsAuto(spec.positions())) spec.set_positions(spec.model() == "xl" ? "none" : "learned");
  if (!spec.has_decoder_layers()) spec.set_decoder_layers(spec.layers());
  if (!spec.has_ffn_width()) spec.set_ffn_width(4 * spec.d_model());
  if (!spec.has_vocab_size()) spec.set_vocab_size(IsText(spec) ? 256 : 64);
  if (!spec.has_memory_length()) {
    spec.set_memory_length(spec.model() == "xl" ? spec.sequence_length() : 0);
  }
  if (!spec.has_table_length()) {
    spec.set_table_length(2 * (spec.memory_length() + spec.sequence_length()));
  }
  spec.set_warmup_steps(WarmupSteps(spec));
  return spec;
}

RunSpec MergeSpecs(const RunSpec& base, const RunSpec& overrides) {
  RunSpec merged = base;
  // The two ways to state a warmup exclude each other, so overriding one drops the other.
  if (overrides.has_warmup_steps()) merged.clear_warmup_fraction();
  if (overrides.has_warmup_fraction()) merged.clear_warmup_steps();
  merged.MergeFrom(overrides);
  return merged;
}

std::vector<FieldViolation> CheckDisplayName(std::string_view field, std::string_view name) {
  const std::string where(field);
  if (name.empty()) return {{where, "is empty; give a name of 1 to 300 bytes"}};
  if (name.size() > 300) {
    return {{where, StrCat("is ", name.size(), " bytes long; a name has at most 300")}};
  }
  if (!IsUtf8(name)) return {{where, "is not UTF-8 text"}};
  if (FindControl(name) != std::string_view::npos) {
    return {{where, "has a control character (a line break, a tab, ...); remove it"}};
  }
  return {};
}

}  // namespace normlab::domain
