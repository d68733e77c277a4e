// What this trainer can do, for the server that will start it.
#ifndef NORMLAB_SERVER_TRAINER_LINK_CAPABILITIES_H_
#define NORMLAB_SERVER_TRAINER_LINK_CAPABILITIES_H_

#include <string>

namespace normlab::trainer {

// normlab-trainer --capabilities prints this and exits with 0.
inline constexpr char kCapabilitiesFlag[] = "--capabilities";

// One line of JSON: {"engine":"2.13.0","gpus":1,"version":"0.1.0"}. `gpus` is the number of GPUs
// that a run can be trained on, 0 in a build without CUDA; whether this machine has one is not
// looked at.
std::string CapabilitiesText();

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_CAPABILITIES_H_
