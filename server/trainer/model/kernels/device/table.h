// The device kernels: all of `Kernels` and `StepKernels` that a device has. Compiled once by nvcc
// and once, for tests, as plain C++; README.md describes the loops. Included after one of the
// launch headers.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_TABLE_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_TABLE_H_

#include "server/trainer/model/kernels/device/activation.h"
#include "server/trainer/model/kernels/device/attention.h"
#include "server/trainer/model/kernels/device/elementwise.h"
#include "server/trainer/model/kernels/device/norm.h"
#include "server/trainer/model/kernels/device/rows.h"
#include "server/trainer/model/kernels/device/softmax.h"
#include "server/trainer/model/kernels/device/step.h"
#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/step_kernels.h"

namespace normlab::trainer {
namespace {

// Stands for a kernel that no device has. Nothing calls it: what needs one is refused before
// (train/device_learner.cc).
template <typename Result, typename... Arguments>
Result Missing(Arguments...) {
  throw std::runtime_error("a kernel that devices do not have was called");
}

const Kernels kDeviceKernels = {
    .instruction_set = NORMLAB_DEVICE_NAME,
    .products = NORMLAB_DEVICE_PRODUCTS,
    .matrix_multiply = MatrixMultiply,
    .layer_norm_forward = LayerNormForward,
    .layer_norm_backward = LayerNormBackward,
    .rms_norm_forward = RmsNormForward,
    .rms_norm_backward = RmsNormBackward,
    .dyt_forward = DyTForward,
    .dyt_backward = DyTBackward,
    .relu_forward = ReluForward,
    .relu_backward = ReluBackward,
    .gelu_forward = GeluForward,
    .gelu_backward = GeluBackward,
    .gelu_tanh_forward = GeluTanhForward,
    .gelu_tanh_backward = GeluTanhBackward,
    .swiglu_forward = SwigluForward,
    .swiglu_backward = SwigluBackward,
    .attention_scratch = AttentionScratchOf,
    .attention_forward = AttentionForward,
    .attention_backward = AttentionBackward,
    .softmax_of_row = Missing,
    .softmax_gradient_of_row = Missing,
    .round_to_bfloat16 = Missing,
    .philox = Missing,
    .dropout = Dropout,
    .softmax_forward = SoftmaxForward,
    .sum_losses = SumLosses,
    .softmax_backward = SoftmaxBackward,
    .add = Add,
    .copy = Copy,
    .fill_rows = FillRows,
    .add_column_sums = AddColumnSums,
    .scale = Scale,
    .scale_columns = ScaleColumns,
    .add_column_products = AddColumnProducts,
    .embed_forward = EmbedForward,
    .embed_backward = EmbedBackward,
    .rms_norm_groups_forward = RmsNormGroupsForward,
    .rms_norm_groups_backward = RmsNormGroupsBackward,
    .copy_columns = CopyColumns,
    .spread = Spread,
    .add_group_sums = AddGroupSums,
    .rotate = Rotate,
    .mean_forward = MeanForward,
    .mean_backward = MeanBackward,
    .sum_of_squares = Missing,
    .sum_of_squared_differences = Missing,
    .largest = Missing,
    .adamw = Missing,
    .exponential = Missing,
    .hyperbolic_tangent = Missing,
};

const StepKernels kDeviceStepKernels = {
    .begin_step = BeginStep,
    .add_loss = AddLoss,
    .measure_gradients = MeasureGradients,
    .finish_step = FinishStep,
    .adamw = AdamWStep,
    .sgd = SgdStep,
};

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_TABLE_H_
