#include "server/domain/spec.h"

#include <cmath>
#include <string>

#include "server/base/strings.h"
#include "server/domain/settings.h"

namespace normlab::domain {
namespace {

using v1::RunSpec;

bool IsAuto(const std::string& value) { return value.empty() || value == "auto"; }

int64_t WarmupSteps(const RunSpec& spec) {
  if (spec.has_warmup_steps()) return spec.warmup_steps();
  if (spec.warmup_fraction() <= 0) return 0;
  const auto steps = static_cast<int64_t>(
      std::floor(spec.warmup_fraction() * static_cast<double>(spec.steps())));
  return std::max<int64_t>(1, steps);
}

void CheckCombinations(const RunSpec& given, const RunSpec& effective,
                       std::vector<FieldViolation>& wrong) {
  if (effective.d_model() % effective.heads() != 0) {
    wrong.push_back({"spec.heads", StrCat(effective.heads(), " heads do not divide d_model ",
                                                effective.d_model(),
                                                "; choose a divisor of d_model")});
  }
  if (given.has_warmup_steps() && given.warmup_fraction() > 0) {
    wrong.push_back({"spec.warmup_fraction",
                     "warmup_steps is given too; give one of the two and leave the other out"});
  }
}

void CheckMachine(const RunSpec& effective, const MachineLimits& limits,
                  std::vector<FieldViolation>& wrong) {
  if (effective.threads() > limits.cpu_threads) {
    wrong.push_back({"spec.threads",
                     StrCat(effective.threads(), " threads are more than the ",
                                  limits.cpu_threads, " this machine lends; ask for at most ",
                                  limits.cpu_threads)});
  }
  const double needed = MemoryLowerBound(effective);
  if (limits.memory_bytes > 0 && needed > static_cast<double>(limits.memory_bytes)) {
    wrong.push_back(
        {"spec.d_model",
         StrCat("the model needs at least ", std::ceil(needed / (1 << 30)),
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
  if (IsAuto(spec.norm())) spec.set_norm("layernorm");
  if (IsAuto(spec.final_norm())) spec.set_final_norm(spec.placement() == "pre" ? "on" : "off");
  if (!spec.has_ffn_width()) spec.set_ffn_width(4 * spec.d_model());
  if (IsAuto(spec.init())) spec.set_init("flax");
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

double MemoryLowerBound(const RunSpec& spec) {
  const double layers = static_cast<double>(spec.layers());
  const double d = static_cast<double>(spec.d_model());
  const double ffn = static_cast<double>(spec.ffn_width());
  const double tokens =
      static_cast<double>(spec.batch_size()) * static_cast<double>(spec.sequence_length());
  const double vocab = static_cast<double>(spec.vocab_size());
  const double weights = layers * (4 * d * d + 2 * d * ffn) + 2 * vocab * d +
                         static_cast<double>(spec.sequence_length()) * d;
  const double attention = tokens * static_cast<double>(spec.sequence_length()) *
                           static_cast<double>(spec.heads());
  const double activations = layers * (tokens * (6 * d + ffn) + attention) + tokens * vocab;
  return 4.0 * (4 * weights + activations);  // float32; weight, gradient and two moments
}

std::vector<FieldViolation> CheckDisplayName(std::string_view field, std::string_view name) {
  const std::string where(field);
  if (name.empty()) return {{where, "is empty; give a name of 1 to 300 bytes"}};
  if (name.size() > 300) {
    return {{where, StrCat("is ", name.size(), " bytes long; a name has at most 300")}};
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return {{where, "has a control character (a line break, a tab, ...); remove it"}};
    }
  }
  return {};
}

}  // namespace normlab::domain
