// What an exception of the engine tells the owner of a run.
#ifndef NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_
#define NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_

#include <cstdint>
#include <string>

namespace normlab::trainer {

// `what`, as it is, but for LibTorch's own exception of a GPU whose memory is full: that one is put
// into the words of the engine's (model/memory_budget.h), with the sizes as far as it says them and
// `budget`, in bytes, 0 for the whole GPU.
std::string FaultText(const std::string& what, int64_t budget);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_LINK_FAULT_TEXT_H_
