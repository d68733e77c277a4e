// What CUDA itself takes of a GPU for each process that uses it.
#ifndef NORMLAB_SERVER_BASE_GPU_CONTEXT_H_
#define NORMLAB_SERVER_BASE_GPU_CONTEXT_H_

#include <cstdint>

namespace normlab {

// Bytes for the context, the code of kernels and the scratch memory of the library that multiplies
// matrices, before a run has any array there. A bound, not a measurement: on data-centre GPUs it is
// about half of that. It is part of a run's memory budget, as the driver counts it as the
// process's: the server adds it to what the settings need, the trainer leaves it free.
inline constexpr int64_t kGpuContextBytes = int64_t{1} << 30;

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_GPU_CONTEXT_H_
