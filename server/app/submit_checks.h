// What is looked at when runs are handed in or changed, beside their settings: who may ask for
// which class, and whether the machine has what is asked for. Pure functions.
#ifndef NORMLAB_SERVER_APP_SUBMIT_CHECKS_H_
#define NORMLAB_SERVER_APP_SUBMIT_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run.pb.h"
#include "server/app/api.h"
#include "server/domain/violations.h"
#include "server/scheduler/device.h"

namespace normlab::app {

// A violation of a class that there is not, or none. `field` is "priority", as the request has it.
std::vector<domain::FieldViolation> CheckPriority(const std::string& field,
                                                  const std::string& priority);

// PERMISSION_DENIED for a class that the caller may not give.
absl::Status MayGive(const Principal& principal, const std::string& field,
                     const std::string& priority);

// What this machine does not have and its trainers do not do, with the numbers. Of the run its
// device, as asked for ("auto" and the like), its resources and the size of its model are looked
// at. `gpus_of_a_run`: so many at most does a trainer train on.
std::vector<domain::FieldViolation> CheckResources(const std::string& prefix, const v1::Run& run,
                                                   const std::vector<scheduler::Device>& devices,
                                                   int64_t gpus_of_a_run);

// Gives a run of an experiment what the request says for all of them, where it says nothing itself.
void ApplyDefaults(const v1::CreateExperimentRequest& request, v1::Run& run);

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_SUBMIT_CHECKS_H_
