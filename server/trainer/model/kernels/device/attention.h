// Attention: one group of lanes for each query, and on the way back for each key.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ATTENTION_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ATTENTION_H_

#include "server/trainer/model/kernels/device/elementwise.h"
#include "server/trainer/model/kernels/kernels.h"

namespace normlab::trainer {
namespace {

// Where a row of a head is: `i` counts (sequence, head, position).
struct HeadRow {
  long position;
  long qkv;  // offset of the head's q at that position; k and v are `width` and 2 `width` on
  long out;  // offset in the output
  long sequence_qkv;  // offset of the head's q at position 0
  long sequence_out;
  long probabilities;  // offset of its row [stride]
  long head_probabilities;
};

struct HeadShape {
  long time;
  long width;
  long heads;
  long head_width;
  long stride;  // of a row of probabilities
  bool causal;
  float scale;    // 1 / sqrt(head_width)
  bool in_fours;  // every head of every row begins at a multiple of four

  NORMLAB_DEVICE HeadRow At(long i) const {
    HeadRow at;
    at.position = i % time;
    const long head = i / time % heads;
    const long sequence = i / time / heads;
    at.sequence_qkv = sequence * time * 3 * width + head * head_width;
    at.qkv = at.sequence_qkv + at.position * 3 * width;
    at.sequence_out = sequence * time * width + head * head_width;
    at.out = at.sequence_out + at.position * width;
    at.head_probabilities = (sequence * heads + head) * time * stride;
    at.probabilities = at.head_probabilities + at.position * stride;
    return at;
  }
  // How many keys a query sees.
  NORMLAB_DEVICE long Visible(long position) const { return causal ? position + 1 : time; }
};

HeadShape ShapeOf(long time, long width, long heads, bool causal) {
  const long head_width = width / heads;
  return {.time = time,
          .width = width,
          .heads = heads,
          .head_width = head_width,
          .stride = AttentionStride(time),
          .causal = causal,
          .scale = 1.0f / sqrtf(static_cast<float>(head_width)),
          .in_fours = head_width % 4 == 0};
}

// Four numbers that are loaded at once.
struct alignas(16) Four {
  float x, y, z, w;
};

// Lanes read different rows here, far apart: fewer, wider loads are what counts. `in_fours` says
// that count and both addresses allow them.
NORMLAB_DEVICE inline float Dot(const float* a, const float* b, long count, bool in_fours) {
  float sum = 0;
  if (!in_fours) {
    for (long c = 0; c < count; ++c) sum += a[c] * b[c];
    return sum;
  }
  const auto* a4 = reinterpret_cast<const Four*>(a);
  const auto* b4 = reinterpret_cast<const Four*>(b);
  for (long c = 0; c < count / 4; ++c) {
    const Four u = a4[c];
    const Four v = b4[c];
    sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  return sum;
}

// p_j = softmax_j(q . k_j / sqrt(head_width)), out = sum_j p_j v_j.
void AttentionForward(const float* qkv, long batch, long time, long width, long heads, bool causal,
                      float* probabilities, float* out, float* /*scratch*/) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  const long step = 3 * width;
  ForEachRow(batch * heads * time, [=] NORMLAB_DEVICE(const Lanes& lanes, long i) {
    const HeadRow at = s.At(i);
    const long visible = s.Visible(at.position);
    const float* q = qkv + at.qkv;
    const float* k = qkv + at.sequence_qkv + s.width;
    const float* v = qkv + at.sequence_qkv + 2 * s.width;
    float* p = probabilities + at.probabilities;
    float highest = -INFINITY;
    for (long j = lanes.lane; j < visible; j += Lanes::count) {
      p[j] = Dot(q, k + j * step, s.head_width, s.in_fours) * s.scale;
      highest = fmaxf(highest, p[j]);
    }
    highest = lanes.Max(highest);
    float sum = 0;
    for (long j = lanes.lane; j < visible; j += Lanes::count) {
      p[j] = expf(p[j] - highest);
      sum += p[j];
    }
    const float inverse = 1.0f / lanes.Sum(sum);
    for (long j = lanes.lane; j < visible; j += Lanes::count) p[j] *= inverse;
    // Nobody reads behind `visible`, but a look from outside finds zeros.
    for (long j = visible + lanes.lane; j < s.stride; j += Lanes::count) p[j] = 0;
    lanes.Meet();
    for (long c = lanes.lane; c < s.head_width; c += Lanes::count) {
      float total = 0;
      for (long j = 0; j < visible; ++j) total += p[j] * v[j * step + c];
      out[at.out + c] = total;
    }
  });
}

// ds_j = p_j (dp_j - sum p dp) / sqrt(head_width) with dp_j = dout . v_j, kept for the keys;
// dq = sum_j ds_j k_j.
void QueryGradients(const HeadShape& s, long count, const float* qkv, const float* probabilities,
                    const float* dout, bool accumulate, float* dqkv, float* scores) {
  const long step = 3 * s.width;
  ForEachRow(count, [=] NORMLAB_DEVICE(const Lanes& lanes, long i) {
    const HeadRow at = s.At(i);
    const long visible = s.Visible(at.position);
    const float* k = qkv + at.sequence_qkv + s.width;
    const float* v = qkv + at.sequence_qkv + 2 * s.width;
    const float* p = probabilities + at.probabilities;
    float* ds = scores + at.probabilities;
    float sum = 0;
    for (long j = lanes.lane; j < visible; j += Lanes::count) {
      ds[j] = Dot(dout + at.out, v + j * step, s.head_width, s.in_fours);
      sum += p[j] * ds[j];
    }
    sum = lanes.Sum(sum);
    for (long j = lanes.lane; j < visible; j += Lanes::count) {
      ds[j] = p[j] * (ds[j] - sum) * s.scale;
    }
    lanes.Meet();
    for (long c = lanes.lane; c < s.head_width; c += Lanes::count) {
      float total = 0;
      for (long j = 0; j < visible; ++j) total += ds[j] * k[j * step + c];
      Put(dqkv + at.qkv + c, total, accumulate);
    }
  });
}

// dk_j = sum_i ds_ij q_i and dv_j = sum_i p_ij dout_i over the queries i that see j.
void KeyGradients(const HeadShape& s, long count, const float* qkv, const float* probabilities,
                  const float* dout, const float* scores, bool accumulate, float* dqkv) {
  const long step = 3 * s.width;
  ForEachRow(count, [=] NORMLAB_DEVICE(const Lanes& lanes, long i) {
    const HeadRow at = s.At(i);
    const long j = at.position;
    for (long c = lanes.lane; c < s.head_width; c += Lanes::count) {
      float dk = 0;
      float dv = 0;
      for (long t = s.causal ? j : 0; t < s.time; ++t) {
        const long entry = at.head_probabilities + t * s.stride + j;
        dk += scores[entry] * qkv[at.sequence_qkv + t * step + c];
        dv += probabilities[entry] * dout[at.sequence_out + t * s.width + c];
      }
      Put(dqkv + at.qkv + s.width + c, dk, accumulate);
      Put(dqkv + at.qkv + 2 * s.width + c, dv, accumulate);
    }
  });
}

// For the gradients of the scores, of all sequences at once.
long AttentionScratchOf(long batch, long time, long /*width*/, long heads) {
  return batch * heads * time * AttentionStride(time);
}

void AttentionBackward(const float* qkv, const float* probabilities, const float* out_gradient,
                       long batch, long time, long width, long heads, bool causal, bool accumulate,
                       float* qkv_gradient, float* scratch) {
  const HeadShape s = ShapeOf(time, width, heads, causal);
  const long count = batch * heads * time;
  QueryGradients(s, count, qkv, probabilities, out_gradient, accumulate, qkv_gradient, scratch);
  KeyGradients(s, count, qkv, probabilities, out_gradient, scratch, accumulate, qkv_gradient);
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_ATTENTION_H_
