// What a step does around the model, on a device that the host does not wait for.
//
// All that changes from step to step is read from StepNumbers in the device's memory, so that a
// recorded step can be replayed; all that the host wants to know of a step is written to a
// StepRecord in shared memory.
//
// Includes nothing, for the same reason as kernels.h.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_STEP_KERNELS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_STEP_KERNELS_H_

namespace normlab::trainer {

// What the host knows of a step before it begins.
struct StepNumbers {
  double loss_scale = 0;       // 1 / (targets that count)
  float loss_scale_float = 0;  // the same, for softmax_backward
  float rate = 0;              // learning rate
  float m_correction = 0;      // of AdamW: 1 / (1 - beta^step)
  float v_correction = 0;
  long step = 0;
  long slot = 0;  // index of its record
};

// What a step turned out to be. `step` is written last: when it is there, so is the rest.
struct StepRecord {
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  double non_finite = 0;     // how many gradients are
  long step = 0;
};

// Memory of the device between the kernels of a step, and `halted` between steps.
struct StepState {
  double batch_loss = 0;  // sum_losses of one batch
  double loss = 0;        // of the step so far
  double squares = 0;     // of the gradients
  double non_finite = 0;  // gradients
  float clip = 1;         // what the gradients are multiplied with
  int halted = 0;         // the run has diverged: nothing is updated any more
};

struct StepKernels {
  // state->loss = 0.
  void (*begin_step)(StepState* state);
  // state->loss += state->batch_loss * loss_scale.
  void (*add_loss)(const StepNumbers* numbers, StepState* state);
  // Fills squares and non_finite from the gradients, always adding in the same order.
  void (*measure_gradients)(const float* gradients, long count, StepState* state);
  // Writes the step's record, sets `clip` (clip_norm 0: never clips; an infinite norm is not
  // clipped), and halts if the loss or the norm is not finite and `halt` is on.
  void (*finish_step)(const StepNumbers* numbers, double clip_norm, bool halt, StepState* state,
                      StepRecord* records);
  // As Kernels::adamw, of clipped gradients; nothing if halted.
  void (*adamw)(const StepNumbers* numbers, const StepState* state, const float* gradients,
                long count, float beta1, float beta2, float epsilon, float decay, float* parameters,
                float* m, float* v);
  // b = momentum b + g; parameters -= rate (b + decay parameters); nothing if halted.
  void (*sgd)(const StepNumbers* numbers, const StepState* state, const float* gradients,
              long count, float momentum, float decay, float* parameters, float* b);
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_STEP_KERNELS_H_
