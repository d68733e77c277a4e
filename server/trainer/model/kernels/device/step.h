// What a step does around the model; step_kernels.h says what each does.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_STEP_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_STEP_H_

#include "server/trainer/model/kernels/step_kernels.h"

namespace normlab::trainer {
namespace {

void BeginStep(StepState* state) {
  Once([=] NORMLAB_DEVICE() { state->loss = 0; });
}

void AddLoss(const StepNumbers* numbers, StepState* state) {
  Once([=] NORMLAB_DEVICE() { state->loss += state->batch_loss * numbers->loss_scale; });
}

// x - x is 0 for every number, and NaN for infinities and NaN.
NORMLAB_DEVICE inline bool IsFinite(double x) { return x - x == 0; }

void MeasureGradients(const float* gradients, long count, StepState* state) {
  TotalOf(
      count,
      [=] NORMLAB_DEVICE(long i) { return static_cast<double>(gradients[i]) * gradients[i]; },
      [=] NORMLAB_DEVICE(double total) { state->squares = total; });
  TotalOf(
      count, [=] NORMLAB_DEVICE(long i) { return IsFinite(gradients[i]) ? 0.0 : 1.0; },
      [=] NORMLAB_DEVICE(double total) { state->non_finite = total; });
}

void FinishStep(const StepNumbers* numbers, double clip_norm, bool halt, StepState* state,
                StepRecord* records) {
  Once([=] NORMLAB_DEVICE() {
    const double norm = sqrt(state->squares);
    const bool finite = IsFinite(state->loss) && IsFinite(norm);
    const bool clips = clip_norm > 0 && IsFinite(norm) && norm > clip_norm;
    state->clip = clips ? static_cast<float>(clip_norm / norm) : 1.0f;
    if (halt && !finite) state->halted = 1;
    StepRecord* record = records + numbers->slot;
    record->loss = state->loss;
    record->gradient_norm = norm;
    record->non_finite = state->non_finite;
    PublishToHost();
    *static_cast<volatile long*>(&record->step) = numbers->step;
  });
}

void AdamWStep(const StepNumbers* numbers, const StepState* state, const float* gradients,
               long count, float beta1, float beta2, float epsilon, float decay, float* parameters,
               float* m, float* v) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) {
    if (state->halted != 0) return;
    const float g = gradients[i] * state->clip;
    const float new_m = beta1 * m[i] + (1.0f - beta1) * g;
    const float new_v = beta2 * v[i] + (1.0f - beta2) * (g * g);
    m[i] = new_m;
    v[i] = new_v;
    const float update =
        new_m * numbers->m_correction / (sqrtf(new_v * numbers->v_correction) + epsilon) +
        decay * parameters[i];
    parameters[i] -= numbers->rate * update;
  });
}

void SgdStep(const StepNumbers* numbers, const StepState* state, const float* gradients, long count,
             float momentum, float decay, float* parameters, float* b) {
  ForEach(count, [=] NORMLAB_DEVICE(long i) {
    if (state->halted != 0) return;
    b[i] = momentum * b[i] + gradients[i] * state->clip;
    parameters[i] -= numbers->rate * (b[i] + decay * parameters[i]);
  });
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_STEP_H_
