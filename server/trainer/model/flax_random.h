// The random stream with which Flax initialises a model, bit for bit.
//
// A JAX user who calls `model.init(jax.random.PRNGKey(seed), ...)` gets certain weights; these
// functions make the same ones without JAX (threefry2x32 keys, partitionable bits, 32-bit mode,
// init not jitted, on a CPU with fused multiply-add). Sources: Salmon et al. 2011 (Threefry), FIPS
// 180 (SHA-1), Giles 2010 (single-precision inverse error function), Cephes (log1p).
//
//   const RandomKey key = ParameterKey(RootKey(7), "block_0qkv");
//   FillTruncatedNormal(key, LecunScale(64), kernel);
#ifndef NORMLAB_SERVER_TRAINER_MODEL_FLAX_RANDOM_H_
#define NORMLAB_SERVER_TRAINER_MODEL_FLAX_RANDOM_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace normlab::trainer {

struct RandomKey {
  uint32_t first = 0;
  uint32_t second = 0;
  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

// One Threefry-2x32 block of 20 rounds: encrypts the pair (x0, x1) under `key`.
RandomKey Threefry(RandomKey key, uint32_t x0, uint32_t x1);

// PRNGKey(seed). As in JAX without 64-bit mode, only the low 32 bits of the seed count.
RandomKey RootKey(int64_t seed);

// The key of the `number`-th parameter made in a module, from 1. `modules` is the names from the
// root down without separators ("block_0qkv").
RandomKey ParameterKey(RandomKey root, std::string_view modules, char number = 1);

// The 32 random bits of element `index` (row-major) of a parameter.
uint32_t RandomBits(RandomKey key, uint64_t index);

// N(0, 1) * scale.
void FillNormal(RandomKey key, float scale, std::span<float> out);

// N(0, 1) truncated to [-2, 2], * scale.
void FillTruncatedNormal(RandomKey key, float scale, std::span<float> out);

// U[-1, 1) * scale.
void FillUniform(RandomKey key, float scale, std::span<float> out);

// The scale that gives a normal truncated at two standard deviations the variance 1 / fan_in.
float LecunScale(int64_t fan_in);

// The steps between bits and sample, apart so that each can be tested.
namespace flax_random_internal {

float UniformForNormal(uint32_t bits);           // in (-1, 1)
float UniformForTruncatedNormal(uint32_t bits);  // in [erf(-sqrt 2), erf(sqrt 2))
float Log1p(float t);                            // for -1 < t <= 0
float InverseErf(float u);                       // for -1 < u < 1

}  // namespace flax_random_internal
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_FLAX_RANDOM_H_
