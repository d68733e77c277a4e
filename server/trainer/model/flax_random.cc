// Every operation here is rounded on its own, and every fused multiply-add is written as one: this
// file is compiled with contraction off (see CMakeLists.txt).
#include "server/trainer/model/flax_random.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>

#include "server/trainer/model/sha1.h"

// Everything on the way from an element's index to its value is inlined into one loop, which is
// compiled twice: with the FMA instruction and without (then fma is a slow library call with the
// same result).
#define NORMLAB_INLINE inline __attribute__((always_inline))

namespace normlab::trainer {
namespace {

constexpr float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

NORMLAB_INLINE float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// c[0] * x^(N-1) + ... + c[N-1].
template <size_t N>
NORMLAB_INLINE float Horner(float x, const std::array<uint32_t, N>& c) {
  float sum = FromBits(c[0]);
  for (size_t i = 1; i < N; ++i) sum = Fma(sum, x, FromBits(c[i]));
  return sum;
}

NORMLAB_INLINE void FourRounds(const std::array<int, 4>& rotations, uint32_t& x0, uint32_t& x1) {
  for (const int rotation : rotations) {
    x0 += x1;
    x1 = std::rotl(x1, rotation) ^ x0;
  }
}

NORMLAB_INLINE RandomKey ThreefryBlock(RandomKey key, uint32_t x0, uint32_t x1) {
  constexpr std::array<int, 4> kEven = {13, 15, 26, 6};
  constexpr std::array<int, 4> kOdd = {17, 29, 16, 24};
  const std::array<uint32_t, 3> k = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDAu};
  x0 += k[0];
  x1 += k[1];
  for (uint32_t group = 0; group < 5; ++group) {
    FourRounds(group % 2 == 0 ? kEven : kOdd, x0, x1);
    x0 += k[(group + 1) % 3];
    x1 += k[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}

NORMLAB_INLINE uint32_t ElementBits(RandomKey key, uint64_t index) {
  const RandomKey block =
      ThreefryBlock(key, static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(index));
  return block.first ^ block.second;
}

// The top 23 bits as a float in [0, 1), stretched to [low, low + range).
NORMLAB_INLINE float Uniform(uint32_t bits, float low, float range) {
  const float unit = FromBits(bits >> 9 | 0x3F800000u) - 1.0f;
  const float value = Fma(unit, range, low);
  return value < low ? low : value;
}

NORMLAB_INLINE float NormalUniform(uint32_t bits) {
  return Uniform(bits, FromBits(0xBF7FFFFFu), 2.0f);
}

NORMLAB_INLINE float TruncatedUniform(uint32_t bits) {
  return Uniform(bits, FromBits(0xBF745A18u), FromBits(0x3FF45A18u));
}

// |t| < sqrt(2) - 1: a rational function in t.
NORMLAB_INLINE float Log1pSmall(float t) {
  constexpr std::array<uint32_t, 7> kP = {0x383DE04B, 0x3EFF40C5, 0x40D284FA, 0x41EF4B9C,
                                          0x4273CC76, 0x426473AD, 0x41A05101};
  constexpr std::array<uint32_t, 7> kQ = {0x3F800000, 0x417101AD, 0x42A6185B, 0x435DC32D,
                                          0x439A8CA3, 0x43586D8A, 0x42707982};
  const float t2 = t * t;
  const float ratio = Horner(t, kP) / Horner(t, kQ);
  const float r = (t * t2) * ratio;
  return t + Fma(-0.5f, t2, r);
}

// Elsewhere the logarithm of 1 + t, by exponent and mantissa.
NORMLAB_INLINE float Log1pLarge(float t) {
  const uint32_t bits = std::bit_cast<uint32_t>(t + 1.0f);
  float e = static_cast<float>(static_cast<int>(bits >> 23 & 0xFFu) - 126);
  const float m = FromBits((bits & 0x007FFFFFu) | 0x3F000000u);  // in [0.5, 1)
  float x = m - 1.0f;
  if (m < FromBits(0x3F3504F3u)) {  // sqrt(1/2)
    x = x + m;
    e = e - 1.0f;
  }
  const float x2 = x * x;
  const float x3 = x2 * x;
  constexpr std::array<uint32_t, 3> kY0 = {0x3D9021BB, 0xBDEBD1B8, 0x3DEF251A};
  constexpr std::array<uint32_t, 3> kY1 = {0xBDFE5D4F, 0x3E11E9BF, 0xBE2AAE50};
  constexpr std::array<uint32_t, 3> kY2 = {0x3E4CCEAC, 0xBE7FFFFC, 0x3EAAAAAA};
  float y = Fma(Horner(x, kY0), x3, Horner(x, kY1));
  y = Fma(y, x3, Horner(x, kY2));
  y = Fma(y, x3, e * FromBits(0xB95E8083u));
  const float low = Fma(-0.5f, x2, x) + y;
  return Fma(e, FromBits(0x3F318000u), low);
}

NORMLAB_INLINE float Log1pOf(float t) {
  return std::abs(t) < FromBits(0x3ED413CDu) ? Log1pSmall(t) : Log1pLarge(t);
}

NORMLAB_INLINE float InverseErfOf(float u) {
  constexpr std::array<uint32_t, 9> kCentre = {0x32F16588, 0x34B84B36, 0xB66C7357,
                                               0xB6935AC1, 0x396532DB, 0xBAA45408,
                                               0xBB88E4EF, 0x3E7C8F63, 0x3FC02E2F};
  constexpr std::array<uint32_t, 9> kTail = {0xB951F09B, 0x38D3B56B, 0x3AB0DC72,
                                             0xBB70BDE7, 0x3BBC127B, 0xBBF9C5D7,
                                             0x3C1AA57E, 0x3F8036DB, 0x40354F7E};
  const float log = Log1pOf(-(u * u));
  if (log > -5.0f) return u * Horner(-2.5f - log, kCentre);
  return u * Horner(std::sqrt(-log) - 3.0f, kTail);
}

NORMLAB_INLINE float StandardNormal(float u) { return InverseErfOf(u) * FromBits(0x3FB504F3u); }

NORMLAB_INLINE void FillNormalLoop(RandomKey key, float scale, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = StandardNormal(NormalUniform(ElementBits(key, i))) * scale;
  }
}

// Samples are clipped one step inside +-2.
NORMLAB_INLINE void FillTruncatedLoop(RandomKey key, float scale, std::span<float> out) {
  const float limit = FromBits(0x3FFFFFFFu);
  for (size_t i = 0; i < out.size(); ++i) {
    float sample = StandardNormal(TruncatedUniform(ElementBits(key, i)));
    sample = sample < -limit ? -limit : sample;
    sample = sample > limit ? limit : sample;
    out[i] = sample * scale;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void FillNormalFma(RandomKey key, float scale,
                                                       std::span<float> out) {
  FillNormalLoop(key, scale, out);
}

__attribute__((target("avx2,fma"))) void FillTruncatedFma(RandomKey key, float scale,
                                                          std::span<float> out) {
  FillTruncatedLoop(key, scale, out);
}

bool HasFma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

RandomKey Threefry(RandomKey key, uint32_t x0, uint32_t x1) { return ThreefryBlock(key, x0, x1); }

RandomKey RootKey(int64_t seed) { return {0, static_cast<uint32_t>(seed)}; }

RandomKey ParameterKey(RandomKey root, std::string_view modules, char number) {
  std::string bytes(modules);
  bytes.push_back(number);
  return Threefry(root, 0, Sha1(bytes)[0]);
}

uint32_t RandomBits(RandomKey key, uint64_t index) { return ElementBits(key, index); }

void FillNormal(RandomKey key, float scale, std::span<float> out) {
#if defined(__x86_64__)
  if (HasFma()) return FillNormalFma(key, scale, out);
#endif
  FillNormalLoop(key, scale, out);
}

void FillTruncatedNormal(RandomKey key, float scale, std::span<float> out) {
#if defined(__x86_64__)
  if (HasFma()) return FillTruncatedFma(key, scale, out);
#endif
  FillTruncatedLoop(key, scale, out);
}

// Nothing is rounded on the way but the last product, so there is nothing to compile twice.
void FillUniform(RandomKey key, float scale, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = Uniform(ElementBits(key, i), -1.0f, 2.0f) * scale;
  }
}

float LecunScale(int64_t fan_in) {
  const float variance = static_cast<float>(1.0 / static_cast<double>(fan_in));
  return std::sqrt(variance) / FromBits(0x3F612F26u);  // 0.87962566, sd of the truncated normal
}

namespace flax_random_internal {

float UniformForNormal(uint32_t bits) { return NormalUniform(bits); }
float UniformForTruncatedNormal(uint32_t bits) { return TruncatedUniform(bits); }
float Log1p(float t) { return Log1pOf(t); }
float InverseErf(float u) { return InverseErfOf(u); }

}  // namespace flax_random_internal
}  // namespace normlab::trainer
