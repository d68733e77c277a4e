// How large a model is and what a step of it costs, by formula: known at submit, before anything is
// built. A test compares the parameters with those of the model that the trainer builds, for every
// choice that the settings declare.
//
// Pure functions of an effective spec (EffectiveSpec): no I/O, any thread.
#ifndef NORMLAB_SERVER_DOMAIN_MODEL_SIZE_H_
#define NORMLAB_SERVER_DOMAIN_MODEL_SIZE_H_

#include <cstdint>

#include "normlab/v1/run.pb.h"
#include "normlab/v1/run_spec.pb.h"

namespace normlab::domain {

// Trained numbers in the model.
int64_t ParameterCount(const v1::RunSpec& effective);

// Operations of one optimiser step, over all its batches. Counted are matrix products and attention
// (of a causal one only what lies at or below the diagonal), multiply and add as two, forward and
// backward together as three times forward. Norms, activations and the optimiser are left out: they
// are a few percent of the operations.
double FlopsPerStep(const v1::RunSpec& effective);

// Memory of the trainer's process in bytes: weights, gradients of each thread, the optimiser's
// moments, the values of one step with the gradients alive at a time, and what the process has
// before any model (LibTorch above all). Measured resident memory lies within 10 %;
// docs/model_size.md has the table.
double MemoryBytes(const v1::RunSpec& effective);

// Memory of a GPU in bytes, at least what the trainer's process holds there: weights, gradients and
// moments, the values of one step with the gradients alive at a time, and CUDA's own part
// (base/gpu_context.h). It is the budget of a run that names none; a test compares it with what the
// engine allocates.
int64_t GpuMemoryBytes(const v1::RunSpec& effective);

// The three in a run's summary.
void SetModelSize(const v1::RunSpec& effective, v1::Summary& summary);

}  // namespace normlab::domain

#endif  // NORMLAB_SERVER_DOMAIN_MODEL_SIZE_H_
