// The arithmetic of the components, compiled once for each instruction set and chosen at run time.
//
// Conventions: matrices are row-major floats; `rows` counts tokens (batch * time). Every kernel
// runs on the calling thread and always adds in the same order, so the same instruction set gives
// the same bits. With `accumulate` a result is added to what is there, else it overwrites. No
// kernel turns a NaN or an infinity of its input into a number.
//
// This header is included by files that may include nothing else: an inline function of the
// standard library compiled there for AVX-512 could be the copy that the linker keeps for the whole
// program.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_KERNELS_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_KERNELS_H_

namespace normlab::trainer {

// Which random numbers a component draws in a step: the parts of Philox's key and counter that are
// the same for all elements of its input.
struct RandomStream {
  unsigned key[2] = {0, 0};  // the run's seed
  unsigned component = 0;    // below 2^16
  // The lower 32 bits of the step's number, then 8 more of them and the batch's number of 24. Read
  // when drawing, so that what was recorded once serves every step.
  const unsigned* moment = nullptr;
};

// Who multiplies matrices (matrix_product.h).
enum class Products {
  kOwnKernelIfSmall,  // matrix_multiply, and LibTorch on the processor for large ones
  kOwnKernel,
  kLibraryOnGpu,  // LibTorch with CUDA
};

struct Kernels {
  const char* instruction_set;  // "baseline", "avx2", "avx512", or a device's name
  Products products = Products::kOwnKernelIfSmall;

  // c [rows, columns] = a b + bias, or c += a b where `accumulate`; bias (one row) may be null.
  // Element (i, k) of a is a[i * a_row + k * a_column], so a transposed matrix is only other
  // strides; the same for b.
  void (*matrix_multiply)(const float* a, long a_row, long a_column, const float* b, long b_row,
                          long b_column, long rows, long columns, long depth, const float* bias,
                          bool accumulate, float* c);

  // y = gain * (x - mean) / sqrt(variance + epsilon) + bias over each row of `width`; keeps mean
  // and 1 / sqrt(...) of each row for the way back. The variance is that of the centred row, so it
  // survives a large common offset.
  void (*layer_norm_forward)(const float* x, const float* gain, const float* bias, float epsilon,
                             long rows, long width, float* y, float* mean, float* inverse_sd);
  // Gradients of gain and bias are added to.
  void (*layer_norm_backward)(const float* x, const float* gain, const float* mean,
                              const float* inverse_sd, const float* y_gradient, long rows,
                              long width, bool accumulate, float* x_gradient, float* gain_gradient,
                              float* bias_gradient);

  // y = gain * x / sqrt(mean(x^2) + epsilon).
  void (*rms_norm_forward)(const float* x, const float* gain, float epsilon, long rows, long width,
                           float* y, float* inverse_rms);
  void (*rms_norm_backward)(const float* x, const float* gain, const float* inverse_rms,
                            const float* y_gradient, long rows, long width, bool accumulate,
                            float* x_gradient, float* gain_gradient);

  // y = gain * tanh(*alpha x) + bias. Gradients of alpha, gain and bias are added to.
  void (*dyt_forward)(const float* x, const float* alpha, const float* gain, const float* bias,
                      long rows, long width, float* y);
  void (*dyt_backward)(const float* x, const float* alpha, const float* gain,
                       const float* y_gradient, long rows, long width, bool accumulate,
                       float* x_gradient, float* alpha_gradient, float* gain_gradient,
                       float* bias_gradient);

  // y = max(x, 0); the derivative at 0 is 0.
  void (*relu_forward)(const float* x, long count, float* y);
  void (*relu_backward)(const float* x, const float* y_gradient, long count, bool accumulate,
                        float* x_gradient);

  // y = x P(X <= x) for a normal X, that is x/2 (1 + erf(x / sqrt 2)); Hendrycks and Gimpel 2016.
  void (*gelu_forward)(const float* x, long count, float* y);
  void (*gelu_backward)(const float* x, const float* y_gradient, long count, bool accumulate,
                        float* x_gradient);
  // Their approximation of it, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
  void (*gelu_tanh_forward)(const float* x, long count, float* y);
  void (*gelu_tanh_backward)(const float* x, const float* y_gradient, long count, bool accumulate,
                             float* x_gradient);

  // y = a sigmoid(a) * b (Shazeer 2020); a row of x [rows, 2 width] is a, then b.
  void (*swiglu_forward)(const float* x, long rows, long width, float* y);
  void (*swiglu_backward)(const float* x, const float* y_gradient, long rows, long width,
                          bool accumulate, float* x_gradient);

  // Causal or full multi-head attention of each of `batch` sequences. qkv [time, 3 width] holds q,
  // k, v side by side, each split into `heads`; probabilities [heads, time, AttentionStride(time)]
  // are kept for the way back; out [time, width]. `scratch` holds
  // attention_scratch() floats.
  long (*attention_scratch)(long batch, long time, long width, long heads);
  void (*attention_forward)(const float* qkv, long batch, long time, long width, long heads,
                            bool causal, float* probabilities, float* out, float* scratch);
  void (*attention_backward)(const float* qkv, const float* probabilities,
                             const float* out_gradient, long batch, long time, long width,
                             long heads, bool causal, bool accumulate, float* qkv_gradient,
                             float* scratch);

  // row = softmax of scale * row.
  void (*softmax_of_row)(float scale, long count, float* row);
  // From the gradient of such a softmax p to that of the row, in place.
  void (*softmax_gradient_of_row)(const float* p, float scale, long count, float* gradient);

  // The nearest bfloat16, ties to even; NaN stays NaN. x and y may be the same.
  void (*round_to_bfloat16)(const float* x, long count, float* y);

  // The 128 random bits of a counter of 128 under a key of 64: Philox-4x32-10 (Salmon et al. 2011).
  void (*philox)(const unsigned* counter, const unsigned* key, unsigned* bits);

  // y (+)= scale * x where the element's random bits are at least `threshold`, else 0 * x. They are
  // those of `stream` at (first_row + row, column); `width` is below 2^18.
  void (*dropout)(const float* x, long rows, long width, const RandomStream& stream,
                  unsigned first_row, unsigned threshold, float scale, bool accumulate, float* y);

  // probabilities = softmax of each row of `logits`. row_sum = sum exp(x - max) and row_target =
  // x_t - max, from which the caller takes the loss log(row_sum) - row_target. Rows with a target
  // below 0 do not count: their row_target is 0.
  void (*softmax_forward)(const float* logits, const int* targets, long rows, long classes,
                          float* probabilities, float* row_sum, float* row_target);
  // *sum = sum over the rows that count of log(row_sum) - row_target.
  void (*sum_losses)(const float* row_sum, const float* row_target, const int* targets, long rows,
                     double* sum);
  // logits_gradient = (probabilities - onehot(target)) * *scale, 0 for rows that do not count.
  void (*softmax_backward)(const float* probabilities, const int* targets, long rows, long classes,
                           const float* scale, bool accumulate, float* logits_gradient);

  // out = a + b.
  void (*add)(const float* a, const float* b, long count, float* out);
  // out (+)= a.
  void (*copy)(const float* a, long count, bool accumulate, float* out);
  // Every row of out = bias, or 0 where bias is null.
  void (*fill_rows)(const float* bias, long rows, long width, float* out);
  // sums[j] += sum over rows of a[row][j].
  void (*add_column_sums)(const float* a, long rows, long width, float* sums);

  // out (+)= factor * x.
  void (*scale)(const float* x, float factor, long count, bool accumulate, float* out);
  // out (+)= x with column c multiplied with factors[c].
  void (*scale_columns)(const float* x, const float* factors, long rows, long width,
                        bool accumulate, float* out);
  // sums[c] += sum over rows of a[row][c] * b[row][c].
  void (*add_column_products)(const float* a, const float* b, long rows, long width, float* sums);

  // y[r] = table[tokens[r]] + positions[r % time], rows of `width`. Without tokens row r of the
  // table itself; positions may be null.
  void (*embed_forward)(const float* table, const int* tokens, const float* positions, long rows,
                        long time, long width, float* y);
  // Adds each row of y_gradient to those it came from; either gradient may be null.
  void (*embed_backward)(const float* y_gradient, const int* tokens, long rows, long time,
                         long width, float* table_gradient, float* positions_gradient);

  // RMS norm with one gain of each of the `groups` parts of `width` side by side that begin each of
  // `rows` rows; the rows are `stride` apart.
  void (*rms_norm_groups_forward)(const float* x, const float* gain, float epsilon, long rows,
                                  long stride, long groups, long width, float* y,
                                  float* inverse_rms);
  void (*rms_norm_groups_backward)(const float* x, const float* gain, const float* inverse_rms,
                                   const float* y_gradient, long rows, long stride, long groups,
                                   long width, bool accumulate, float* x_gradient,
                                   float* gain_gradient);
  // out (+)= a in the first `width` columns of rows that are `stride` apart.
  void (*copy_columns)(const float* a, long rows, long stride, long width, bool accumulate,
                       float* out);

  // out[c] = scales[the group of c], where `width` columns are `groups` equal groups.
  void (*spread)(const float* scales, long groups, long width, float* out);
  // sums[g] += sum of the group's columns.
  void (*add_group_sums)(const float* columns, long groups, long width, float* sums);

  // Turns columns 2i and 2i + 1 of q and k of qkv [rows, 3 width] by the angle of (r % time, i %
  // pairs), backwards where `direction` is -1; v is copied. cosines, sines [time, pairs].
  void (*rotate)(const float* x, const float* cosines, const float* sines, float direction,
                 long rows, long time, long width, long pairs, bool accumulate, float* y);

  // y[b, t] = mean of x[b, j] over the visible j: all, or causal those up to t.
  void (*mean_forward)(const float* x, long batch, long time, long width, bool causal, float* y);
  void (*mean_backward)(const float* y_gradient, long batch, long time, long width, bool causal,
                        bool accumulate, float* x_gradient);

  // The sum of squares in double precision: finite for every finite input, infinite or NaN where
  // the input is.
  double (*sum_of_squares)(const float* a, long count);
  // The same of a - b.
  double (*sum_of_squared_differences)(const float* a, const float* b, long count);
  // The largest magnitude; NaN if there is one.
  float (*largest)(const float* a, long count);

  // AdamW (Loshchilov and Hutter 2019) with decoupled decay: m and v are moving averages of g and
  // g^2; parameters -= rate * (m * m_correction / (sqrt(v * v_correction) + epsilon) + decay *
  // parameters).
  void (*adamw)(const float* gradients, long count, float rate, float beta1, float beta2,
                float epsilon, float decay, float m_correction, float v_correction,
                float* parameters, float* m, float* v);

  // Element-wise, for tests.
  void (*exponential)(const float* x, long count, float* y);
  void (*hyperbolic_tangent)(const float* x, long count, float* y);
};

// Row stride of attention probabilities: `time` rounded up to whole vectors of the widest set.
constexpr long AttentionStride(long time) { return (time + 15) / 16 * 16; }

// Floats of scratch that the attention kernels of the processor need.
constexpr long AttentionScratch(long time, long head_width) {
  const long padded_time = AttentionStride(time);
  const long padded_head = (head_width + 15) / 16 * 16;
  return 5 * padded_time * padded_head + padded_time * padded_time;
}

// The widest set this processor has, unless NORMLAB_INSTRUCTION_SET in the environment names a
// narrower one. Throws std::runtime_error if that names none.
const Kernels& BestKernels();

// Null if this processor (or this build) lacks the named set.
const Kernels* FindKernels(const char* instruction_set);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_KERNELS_H_
