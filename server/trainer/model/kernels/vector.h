// Vectors of the width of the instruction set this file is compiled for, with exp and tanh.
// Included only by the kernel sources; everything is in an unnamed namespace so that no copy leaves
// its object file.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_VECTOR_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_VECTOR_H_

namespace normlab::trainer {
namespace {

#if defined(__AVX512F__)
constexpr long kLanes = 16;
#elif defined(__AVX2__)
constexpr long kLanes = 8;
#else
constexpr long kLanes = 4;
#endif

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef int IntVector __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVector __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
// Half as many floats as a Vector has, and as many doubles.
typedef float HalfVector __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));
typedef double DoubleVector __attribute__((vector_size(kLanes * 4)));

#define NORMLAB_KERNEL_INLINE static inline __attribute__((always_inline))

NORMLAB_KERNEL_INLINE Vector Load(const float* p) {
  return *reinterpret_cast<const UnalignedVector*>(p);
}

NORMLAB_KERNEL_INLINE void Store(float* p, Vector v) { *reinterpret_cast<UnalignedVector*>(p) = v; }

// The slow ends of rows that fill no whole vector, out of line so that the loops stay tight.
__attribute__((noinline, cold, unused)) static Vector LoadTail(const float* p, long count) {
  float lanes[kLanes] = {};
  for (long k = 0; k < count; ++k) lanes[k] = p[k];
  return Load(lanes);
}

__attribute__((noinline, cold, unused)) static void StoreTail(float* p, Vector v, long count) {
  float lanes[kLanes];
  Store(lanes, v);
  for (long k = 0; k < count; ++k) p[k] = lanes[k];
}

// The first `count` floats at p, zeros after them.
NORMLAB_KERNEL_INLINE Vector LoadPart(const float* p, long count) {
  return __builtin_expect(count >= kLanes, 1) ? Load(p) : LoadTail(p, count);
}

NORMLAB_KERNEL_INLINE void StorePart(float* p, Vector v, long count) {
  if (__builtin_expect(count >= kLanes, 1)) return Store(p, v);
  StoreTail(p, v, count);
}

// x - 0 is x also for x = -0, so the compiler drops the subtraction; 0 + x would not be.
NORMLAB_KERNEL_INLINE Vector Broadcast(float x) { return x - Vector{}; }

// 0, 1, 2, ...
NORMLAB_KERNEL_INLINE IntVector LaneNumbers() {
  IntVector lanes = {};
  for (int k = 0; k < kLanes; ++k) lanes[k] = k;
  return lanes;
}

// `v` in the first `count` lanes, `other` in the rest.
NORMLAB_KERNEL_INLINE Vector KeepFirst(Vector v, long count, Vector other) {
  return LaneNumbers() < static_cast<int>(count) ? v : other;
}

// Lane k of the result is lane k XOR distance of `v`.
NORMLAB_KERNEL_INLINE Vector SwapLanes(Vector v, int distance) {
  return __builtin_shuffle(v, LaneNumbers() ^ distance);
}

// Adds in a tree: lanes half the width apart, then a quarter, and so on.
NORMLAB_KERNEL_INLINE float Sum(Vector v) {
#pragma GCC unroll 4
  for (int distance = kLanes / 2; distance > 0; distance /= 2) v += SwapLanes(v, distance);
  return v[0];
}

NORMLAB_KERNEL_INLINE float Maximum(Vector v) {
#pragma GCC unroll 4
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const Vector other = SwapLanes(v, distance);
    v = v > other ? v : other;
  }
  return v[0];
}

// A kLanes x kLanes block with its rows made columns, by log2(kLanes) rounds of exchanges: round
// `distance` swaps the off-diagonal quarters of every 2 distance x 2 distance block.
NORMLAB_KERNEL_INLINE void TransposeBlock(const float* from, long from_stride, float* to,
                                          long to_stride) {
  Vector rows[kLanes];
#pragma GCC unroll 16
  for (long i = 0; i < kLanes; ++i) rows[i] = Load(from + i * from_stride);
#pragma GCC unroll 4
  for (int distance = 1; distance < kLanes; distance *= 2) {
    // Lanes with the bit clear come from the first vector, the others from the second.
    const IntVector lanes = LaneNumbers();
    const IntVector upper = (lanes & distance) != 0;
    const IntVector low = upper ? lanes - distance + static_cast<int>(kLanes) : lanes;
    const IntVector high = upper ? lanes + static_cast<int>(kLanes) : lanes + distance;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i & distance) continue;
      const Vector a = rows[i];
      const Vector b = rows[i + distance];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + distance] = __builtin_shuffle(a, b, high);
    }
  }
#pragma GCC unroll 16
  for (long i = 0; i < kLanes; ++i) Store(to + i * to_stride, rows[i]);
}

// x = n ln 2 + r with |r| <= ln(2)/2: returns r, and n as an integer.
NORMLAB_KERNEL_INLINE Vector ReduceByLn2(Vector x, IntVector* n) {
  const Vector shifter = Broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vector shifted = x * 1.44269504f + shifter;
  const Vector rounded = shifted - shifter;
  *n = reinterpret_cast<IntVector>(shifted) - 0x4B400000;
  // ln 2 in two parts, the first of which times n is exact.
  Vector r = x - rounded * 0.693359375f;
  return r - rounded * -2.12194440e-4f;
}

// 2^n for -126 <= n <= 127.
NORMLAB_KERNEL_INLINE Vector PowerOfTwo(IntVector n) {
  return reinterpret_cast<Vector>((n + 127) << 23);
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2: a minimax polynomial, with which e^r is off by 4e-9.
NORMLAB_KERNEL_INLINE Vector ExpTail(Vector r) {
  Vector p = r * 1.38637563e-3f + 8.36750958e-3f;
  p = p * r + 4.16672379e-2f;
  p = p * r + 0.166665345f;
  return p * r + 0.5f;
}

// e^x to 1 ulp, also where the result is subnormal; infinity above 88.73, NaN stays NaN.
NORMLAB_KERNEL_INLINE Vector Exp(Vector x) {
  // Written so that a comparison with NaN keeps x.
  x = x > 100.0f ? Broadcast(100.0f) : x;
  x = x < -110.0f ? Broadcast(-110.0f) : x;
  IntVector n;
  const Vector r = ReduceByLn2(x, &n);
  const Vector p = (ExpTail(r) * r) * r + r + 1.0f;
  // Two factors, because 2^n itself may be out of range where the result is not.
  const IntVector half = n >> 1;
  return p * PowerOfTwo(half) * PowerOfTwo(n - half);
}

// tanh x to 2 ulp, odd bit for bit; NaN stays NaN. With |x| = n ln(2)/2 + h and t = tanh h,
// e^2|x| = 2^n (1 + t) / (1 - t), so
//   tanh |x| = N / (N + 2 - 2t)  with  N = 2^n - 1 + t (2^n + 1).
// Up to |x| = 0.55 n is 0 and the quotient is 2t / 2, t itself. Adding 2 - 2t to N, instead of
// computing the denominator from t anew, lets the rounding of N cancel.
NORMLAB_KERNEL_INLINE Vector Tanh(Vector x) {
  const IntVector sign = reinterpret_cast<IntVector>(x) & static_cast<int>(0x80000000u);
  x = reinterpret_cast<Vector>(reinterpret_cast<IntVector>(x) ^ sign);
  x = x > 10.0f ? Broadcast(10.0f) : x;
  // As in ReduceByLn2, with half the logarithm.
  const Vector shifter = Broadcast(12582912.0f);
  const Vector shifted = x < 0.55f ? shifter : x * 2.88539008f + shifter;
  const Vector rounded = shifted - shifter;
  const Vector scale = PowerOfTwo(reinterpret_cast<IntVector>(shifted) - 0x4B400000);
  Vector h = x - rounded * 0.3466796875f;
  h = h - rounded * -1.06097220e-4f;
  // (tanh h - h) / h^3 for |h| <= 0.55: a minimax polynomial, with which tanh h is off by 4e-8.
  const Vector square = h * h;
  Vector p = square * 1.6457086e-2f - 5.2683298e-2f;
  p = p * square + 0.13320929f;
  p = p * square - 0.33332956f;
  const Vector t = (p * square) * h + h;
  const Vector numerator = t * (scale + 1.0f) + (scale - 1.0f);
  const Vector magnitude = numerator / (numerator + (2.0f - 2.0f * t));
  return reinterpret_cast<Vector>(reinterpret_cast<IntVector>(magnitude) | sign);
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_VECTOR_H_
