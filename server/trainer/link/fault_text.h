// What an exception of the engine tells the owner of a run.
#ifndef NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_
#define NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_

#include <cstdint>
#include <string>

namespace normlab::trainer {

// `what`, as it is, but for a GPU whose memory is full: then how much was wanted, how much of the
// GPU's memory was free, and how much this run may use (`budget` bytes, 0 for all of it), as far as
// the exception says so.
std::string FaultText(const std::string& what, int64_t budget);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_
