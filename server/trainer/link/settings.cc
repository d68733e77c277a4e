#include "server/trainer/link/settings.h"

#include <string>

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
  NORMLAB_TAKE(layers);
  NORMLAB_TAKE(d_model);
  NORMLAB_TAKE(heads);
  NORMLAB_TAKE(ffn_width);
  NORMLAB_TAKE(ffn);
  NORMLAB_TAKE(vocab_size);
  NORMLAB_TAKE(sequence_length);
  NORMLAB_TAKE(batch_size);
  NORMLAB_TAKE(steps);
  NORMLAB_TAKE(optimizer);
  NORMLAB_TAKE(learning_rate);
  NORMLAB_TAKE(schedule);
  NORMLAB_TAKE(warmup_steps);
  NORMLAB_TAKE(beta1);
  NORMLAB_TAKE(beta2);
  NORMLAB_TAKE(epsilon);
  NORMLAB_TAKE(weight_decay);
  NORMLAB_TAKE(decay_parameters);
  NORMLAB_TAKE(init);
  NORMLAB_TAKE(seed);
  NORMLAB_TAKE(data);
  NORMLAB_TAKE(threads);
  NORMLAB_TAKE(stop_on_non_finite);
#undef NORMLAB_TAKE

  if (effective.final_norm() != "on" && effective.final_norm() != "off") {
    return Unresolved("final_norm");
  }
  settings.final_norm = effective.final_norm() == "on";
  return settings;
}

}  // namespace normlab::trainer
