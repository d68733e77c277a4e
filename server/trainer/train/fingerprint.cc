#include "server/trainer/train/fingerprint.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

namespace normlab::trainer {
namespace {

using Member = std::variant<std::string TrainingSettings::*, int64_t TrainingSettings::*,
                            double TrainingSettings::*, bool TrainingSettings::*>;

struct Setting {
  std::string_view name;
  Member member;
};

#define NORMLAB_SETTING(name) \
  Setting { #name, &TrainingSettings::name }

// Any of these changes the numbers.
const Setting kFixed[] = {
    NORMLAB_SETTING(model),
    NORMLAB_SETTING(placement),
    NORMLAB_SETTING(norm),
    NORMLAB_SETTING(norm_epsilon),
    NORMLAB_SETTING(norm_gain),
    NORMLAB_SETTING(dyt_alpha),
    NORMLAB_SETTING(final_norm),
    NORMLAB_SETTING(qk_norm),
    NORMLAB_SETTING(residual_scale),
    NORMLAB_SETTING(mix_fraction),
    NORMLAB_SETTING(layerscale_init),
    NORMLAB_SETTING(layers),
    NORMLAB_SETTING(decoder_layers),
    NORMLAB_SETTING(d_model),
    NORMLAB_SETTING(heads),
    NORMLAB_SETTING(ffn_width),
    NORMLAB_SETTING(ffn),
    NORMLAB_SETTING(activation),
    NORMLAB_SETTING(experts),
    NORMLAB_SETTING(capacity_factor),
    NORMLAB_SETTING(switch_overflow),
    NORMLAB_SETTING(balance_coefficient),
    NORMLAB_SETTING(attention),
    NORMLAB_SETTING(causal),
    NORMLAB_SETTING(bias),
    NORMLAB_SETTING(positions),
    NORMLAB_SETTING(tie_embeddings),
    NORMLAB_SETTING(memory_length),
    NORMLAB_SETTING(table_length),
    NORMLAB_SETTING(init),
    NORMLAB_SETTING(vocab_size),
    NORMLAB_SETTING(sequence_length),
    NORMLAB_SETTING(data),
    NORMLAB_SETTING(text_unit),
    NORMLAB_SETTING(text_order),
    NORMLAB_SETTING(validation_fraction),
    NORMLAB_SETTING(batch_size),
    NORMLAB_SETTING(accumulate),
    NORMLAB_SETTING(dropout),
    NORMLAB_SETTING(optimizer),
    NORMLAB_SETTING(momentum),
    NORMLAB_SETTING(learning_rate),
    NORMLAB_SETTING(schedule),
    NORMLAB_SETTING(warmup_steps),
    NORMLAB_SETTING(learning_rate_floor),
    NORMLAB_SETTING(beta1),
    NORMLAB_SETTING(beta2),
    NORMLAB_SETTING(epsilon),
    NORMLAB_SETTING(weight_decay),
    NORMLAB_SETTING(decay_parameters),
    NORMLAB_SETTING(clip_norm),
    NORMLAB_SETTING(seed),
    NORMLAB_SETTING(precision),
    NORMLAB_SETTING(threads),
    NORMLAB_SETTING(device),
};

// None of these does, or a resumed run may have another one.
const Setting kFree[] = {
    NORMLAB_SETTING(init_file),
    NORMLAB_SETTING(allow_missing),
    NORMLAB_SETTING(text_file),
    NORMLAB_SETTING(validate_every),
    NORMLAB_SETTING(steps),
    NORMLAB_SETTING(stop_on_non_finite),
    NORMLAB_SETTING(cuda_graph),
    NORMLAB_SETTING(gpu_memory_bytes),
    NORMLAB_SETTING(gpu_context_bytes),
    NORMLAB_SETTING(diagnose_every),
    NORMLAB_SETTING(diagnose_tensors),
    NORMLAB_SETTING(probe_every),
    NORMLAB_SETTING(checkpoint_every),
    NORMLAB_SETTING(checkpoint_seconds),
    NORMLAB_SETTING(keep_checkpoints),
    NORMLAB_SETTING(checkpoint_directory),
    NORMLAB_SETTING(resume_from),
    NORMLAB_SETTING(step_limit),
};

#undef NORMLAB_SETTING

// How many members TrainingSettings has: as many as it can be initialised from.
struct Anything {
  template <typename T>
  operator T() const;
};

template <typename... Members>
constexpr size_t CountMembers() {
  if constexpr (requires { TrainingSettings{Members{}..., Anything{}}; }) {
    return CountMembers<Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

static_assert(std::size(kFixed) + std::size(kFree) == CountMembers<>(),
              "a new setting must be listed above: does it change the numbers of a run?");

std::string TextOf(const std::string& value) { return value; }
std::string TextOf(bool value) { return value ? "true" : "false"; }

template <typename Number>
std::string TextOf(Number value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

}  // namespace

std::map<std::string, std::string> Fingerprint(const TrainingSettings& settings) {
  std::map<std::string, std::string> fingerprint;
  for (const Setting& setting : kFixed) {
    fingerprint.emplace(
        setting.name,
        std::visit([&](const auto member) { return TextOf(settings.*member); }, setting.member));
  }
  if (settings.schedule == "cosine" || settings.schedule == "linear") {
    fingerprint.emplace("steps", TextOf(settings.steps));
  }
  return fingerprint;
}

}  // namespace normlab::trainer
