#include "server/trainer/train/first_weights.h"

#include "server/trainer/model/admin_profile.h"
#include "server/trainer/train/data.h"
#include "server/trainer/train/weights.h"

namespace normlab::trainer {

void SetFirstWeights(const TrainingSettings& settings, Learner& learner) {
  if (settings.init == "admin") {
    Batch batch;
    MakeDataSource(settings)->Next(batch);
    ProfileAdmin(settings, learner.parameters(), learner.weights(), batch);
  }
  if (!settings.init_file.empty()) {
    LoadWeights(settings.init_file, settings.allow_missing, learner.parameters(),
                learner.weights());
  }
}

}  // namespace normlab::trainer
