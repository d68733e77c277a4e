#include "server/trainer/link/settings.h"

#include <string>

#include "server/base/gpu_context.h"
#include "server/base/strings.h"

namespace normlab::trainer {
namespace {

absl::Status Unresolved(const char* name) {
  return absl::InvalidArgumentError(StrCat("the effective spec does not resolve spec.", name));
}

template <typename T>
bool IsAuto(const T&) {
  return false;
}
bool IsAuto(const std::string& value) { return value == "auto"; }

}  // namespace

absl::StatusOr<TrainingSettings> SettingsFromSpec(const v1::RunSpec& effective) {
  TrainingSettings settings;
#define NORMLAB_TAKE(name)                                                           \
  if (!effective.has_##name() || IsAuto(effective.name())) return Unresolved(#name); \
  settings.name = effective.name()

  NORMLAB_TAKE(model);
  NORMLAB_TAKE(placement);
  NORMLAB_TAKE(norm);
  NORMLAB_TAKE(norm_epsilon);
  NORMLAB_TAKE(norm_gain);
  NORMLAB_TAKE(dyt_alpha);
  NORMLAB_TAKE(qk_norm);
  NORMLAB_TAKE(residual_scale);
  NORMLAB_TAKE(mix_fraction);
  NORMLAB_TAKE(layerscale_init);
  NORMLAB_TAKE(layers);
  NORMLAB_TAKE(decoder_layers);
  NORMLAB_TAKE(d_model);
  NORMLAB_TAKE(heads);
  NORMLAB_TAKE(ffn_width);
  NORMLAB_TAKE(ffn);
  NORMLAB_TAKE(activation);
  NORMLAB_TAKE(experts);
  NORMLAB_TAKE(capacity_factor);
  NORMLAB_TAKE(switch_overflow);
  NORMLAB_TAKE(balance_coefficient);
  NORMLAB_TAKE(attention);
  NORMLAB_TAKE(causal);
  NORMLAB_TAKE(bias);
  NORMLAB_TAKE(positions);
  NORMLAB_TAKE(tie_embeddings);
  NORMLAB_TAKE(memory_length);
  NORMLAB_TAKE(table_length);
  NORMLAB_TAKE(vocab_size);
  NORMLAB_TAKE(sequence_length);
  NORMLAB_TAKE(batch_size);
  NORMLAB_TAKE(accumulate);
  NORMLAB_TAKE(steps);
  NORMLAB_TAKE(dropout);
  NORMLAB_TAKE(optimizer);
  NORMLAB_TAKE(momentum);
  NORMLAB_TAKE(learning_rate);
  NORMLAB_TAKE(schedule);
  NORMLAB_TAKE(learning_rate_floor);
  NORMLAB_TAKE(warmup_steps);
  NORMLAB_TAKE(beta1);
  NORMLAB_TAKE(beta2);
  NORMLAB_TAKE(epsilon);
  NORMLAB_TAKE(weight_decay);
  NORMLAB_TAKE(decay_parameters);
  NORMLAB_TAKE(clip_norm);
  NORMLAB_TAKE(init);
  NORMLAB_TAKE(allow_missing);
  NORMLAB_TAKE(seed);
  NORMLAB_TAKE(data);
  NORMLAB_TAKE(text_unit);
  NORMLAB_TAKE(text_order);
  NORMLAB_TAKE(validation_fraction);
  NORMLAB_TAKE(validate_every);
  NORMLAB_TAKE(precision);
  NORMLAB_TAKE(cuda_graph);
  NORMLAB_TAKE(threads);
  NORMLAB_TAKE(diagnose_every);
  NORMLAB_TAKE(diagnose_tensors);
  NORMLAB_TAKE(probe_every);
  NORMLAB_TAKE(checkpoint_every);
  NORMLAB_TAKE(checkpoint_seconds);
  NORMLAB_TAKE(keep_checkpoints);
  NORMLAB_TAKE(stop_on_non_finite);
#undef NORMLAB_TAKE

  if (effective.final_norm() != "on" && effective.final_norm() != "off") {
    return Unresolved("final_norm");
  }
  settings.final_norm = effective.final_norm() == "on";
  // The files behind these are named by the assignment.
  if (settings.data.starts_with("text:")) settings.data = "text";
  return settings;
}

absl::StatusOr<TrainingSettings> SettingsFromAssignment(const worker::v1::Assignment& assignment) {
  absl::StatusOr<TrainingSettings> settings = SettingsFromSpec(assignment.effective_spec());
  if (!settings.ok()) return settings;
  settings->checkpoint_directory = assignment.checkpoint_directory();
  settings->resume_from = assignment.resume_from();
  settings->init_file = assignment.init_file();
  settings->text_file = assignment.text_file();
  settings->step_limit = assignment.step_limit();
  // "gpu:1" is the only GPU that the trainer sees; the CPU has names of other forms.
  if (assignment.device().starts_with("gpu")) {
    settings->device = "cuda";
    settings->gpu_memory_bytes = assignment.gpu_memory_bytes();
    settings->gpu_context_bytes = kGpuContextBytes;
  }
  return settings;
}

}  // namespace normlab::trainer
