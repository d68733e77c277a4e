// From the settings as they are declared to the settings as the engine takes them.
#ifndef NORMLAB_SERVER_TRAINER_LINK_SETTINGS_H_
#define NORMLAB_SERVER_TRAINER_LINK_SETTINGS_H_

#include "absl/status/statusor.h"
#include "normlab/v1/run_spec.pb.h"
#include "normlab/worker/v1/worker.pb.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {

// `effective` has every setting, none of them "auto"; INVALID_ARGUMENT, naming it, for one that is
// not so. warmup_fraction alone is not read: the server has made it warmup_steps.
// The paths of files are left empty: the spec only names what they hold.
absl::StatusOr<TrainingSettings> SettingsFromSpec(const v1::RunSpec& effective);

// The same, with the files that the server has found for the names in the spec.
absl::StatusOr<TrainingSettings> SettingsFromAssignment(const worker::v1::Assignment& assignment);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_SETTINGS_H_
