#include "server/trainer/model/flax_random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "server/trainer/model/sha1.h"

namespace normlab::trainer {
namespace {

using flax_random_internal::InverseErf;
using flax_random_internal::Log1p;
using flax_random_internal::UniformForNormal;
using flax_random_internal::UniformForTruncatedNormal;

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }

TEST(Sha1, MatchesTheStandardsExamples) {
  EXPECT_EQ(Sha1("abc"),
            (std::array<uint32_t, 5>{0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d}));
  EXPECT_EQ(Sha1(""),
            (std::array<uint32_t, 5>{0xda39a3ee, 0x5e6b4b0d, 0x3255bfef, 0x95601890, 0xafd80709}));
  // 56 bytes: the length no longer fits the first block.
  EXPECT_EQ(Sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            (std::array<uint32_t, 5>{0x84983e44, 0x1c3bd26e, 0xbaae4aa1, 0xf95129e5, 0xe54670f1}));
}

struct KeyCase {
  std::string_view modules;
  RandomKey key;
  std::array<uint32_t, 4> bits;
};

TEST(FlaxRandom, DerivesTheKeyAndBitsOfAParameterFromItsName) {
  const KeyCase cases[] = {
      {"embedding", {0x8df74203, 0x75133e92}, {0x9dc2018c, 0xe8ee176c, 0x4779a4ae, 0x614493b6}},
      {"block_0qkv", {0x9b78d03f, 0xb89f9a94}, {0xb77a6753, 0xe278ddc7, 0x85fb9d95, 0x3cc105de}},
      {"block_11mlp_out",
       {0xa3a253ef, 0x79e647dd},
       {0xa2e80dea, 0x48977703, 0x92c521b5, 0x2f8f72ea}},
      {"output", {0x4eb458c8, 0x6f373273}, {0xddd58f36, 0x11259763, 0xd748c877, 0xb1d9c1c3}},
  };
  for (const KeyCase& expected : cases) {
    SCOPED_TRACE(expected.modules);
    const RandomKey key = ParameterKey(RootKey(7), expected.modules);
    EXPECT_EQ(key, expected.key);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(RandomBits(key, i), expected.bits[i]);
  }
}

TEST(FlaxRandom, RootKeyKeepsTheLowHalfOfTheSeed) {
  EXPECT_EQ(RootKey(5), (RandomKey{0, 5}));
  EXPECT_EQ(RootKey((int64_t{1} << 32) + 5), RootKey(5));
  EXPECT_EQ(RootKey(-1), (RandomKey{0, 0xffffffff}));
}

struct SampleCase {
  uint32_t bits;
  bool truncated;
  uint32_t uniform;
  uint32_t log1p;
  uint32_t inverse_erf;
};

TEST(FlaxRandom, EveryStepFromBitsToSampleIsExact) {
  const SampleCase cases[] = {
      {0x9dc2018c, false, 0x3e6e1004, 0xbd6396de, 0x3e560e0b},
      {0x00000200, false, 0xbf7ffffb, 0xc16553c0, 0xc067eac7},
      {0xb77a6753, true, 0x3ed3d0be, 0xbe40386c, 0x3ec50647},
      {0x00000000, true, 0xbf745a18, 0xc01adfae, 0xbfb504f2},
  };
  for (const SampleCase& expected : cases) {
    SCOPED_TRACE(testing::Message() << std::hex << expected.bits);
    const float u = expected.truncated ? UniformForTruncatedNormal(expected.bits)
                                       : UniformForNormal(expected.bits);
    EXPECT_EQ(BitsOf(u), expected.uniform);
    EXPECT_EQ(BitsOf(Log1p(-(u * u))), expected.log1p);
    EXPECT_EQ(BitsOf(InverseErf(u)), expected.inverse_erf);
  }
}

TEST(FlaxRandom, FirstWeightsOfTheArticle) {
  std::vector<float> embedding(4);
  FillNormal(ParameterKey(RootKey(7), "embedding"), 1.0f, embedding);
  EXPECT_EQ(BitsOf(embedding[0]), 0x3e975c11u);
  EXPECT_EQ(embedding[1], 1.34003472f);
  std::vector<float> qkv(4);
  FillTruncatedNormal(ParameterKey(RootKey(7), "block_0qkv"), LecunScale(64), qkv);
  EXPECT_EQ(BitsOf(qkv[0]), 0x3d9e61f0u);
  EXPECT_EQ(qkv[1], 0.158169761f);
  EXPECT_EQ(qkv[2], 0.00795009639f);
  EXPECT_EQ(qkv[3], -0.0961746946f);
}

TEST(FlaxRandom, LecunScaleIsRoundedAsInFlax) {
  EXPECT_EQ(BitsOf(LecunScale(64)), 0x3E118436u);
  EXPECT_EQ(BitsOf(LecunScale(256)), 0x3D918436u);
  EXPECT_EQ(BitsOf(LecunScale(48)), 0x3E280725u);
  EXPECT_EQ(BitsOf(LecunScale(192)), 0x3DA80725u);
}

}  // namespace
}  // namespace normlab::trainer
