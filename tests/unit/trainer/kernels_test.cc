#include "server/trainer/model/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/trainer/model/matrix_product.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, testing::ValuesIn(AvailableKernels()),
                         [](const auto& set) { return std::string(set.param->instruction_set); });

// Distance in units in the last place of the true result.
double UlpError(float actual, double expected) {
  const auto rounded = static_cast<float>(expected);
  if (actual == rounded) return 0;
  const double ulp = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return std::abs(actual - expected) / ulp;
}

// Every 997th float between the two.
std::vector<float> Sweep(float low, float high) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x7F800000u; bits += 997) {
    const auto magnitude = std::bit_cast<float>(bits);
    if (magnitude <= high) values.push_back(magnitude);
    if (-magnitude >= low) values.push_back(-magnitude);
  }
  return values;
}

template <typename Exact>
double WorstUlp(void (*function)(const float*, long, float*), const std::vector<float>& x,
                const Exact& exact) {
  std::vector<float> y(x.size());
  function(x.data(), static_cast<long>(x.size()), y.data());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, UlpError(y[i], exact(static_cast<double>(x[i]))));
  }
  return worst;
}

TEST_P(KernelsTest, ExponentialIsWithinTwoUlp) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LT(WorstUlp(kernels().exponential, Sweep(-87.3f, 88.7f), exact), 2.0);
  // Subnormal results too: what softmax sees of a very unlikely class.
  EXPECT_LT(WorstUlp(kernels().exponential, Sweep(-103.0f, 0.0f), exact), 2.0);
}

TEST_P(KernelsTest, HyperbolicTangentIsWithinTwoUlpAndOdd) {
  const std::vector<float> x = Sweep(-kInfinity, kInfinity);  // all exponents
  EXPECT_LT(WorstUlp(kernels().hyperbolic_tangent, x, [](double v) { return std::tanh(v); }), 2.0);
  std::vector<float> y(x.size());
  kernels().hyperbolic_tangent(x.data(), static_cast<long>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); i += 2) {  // x and -x stand side by side
    ASSERT_EQ(x[i], -x[i + 1]);
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]) ^ 0x80000000u, std::bit_cast<uint32_t>(y[i + 1]));
  }
}

TEST_P(KernelsTest, ExponentialAndTangentKeepInfinitiesAndNan) {
  const std::array<float, 5> x = {kInfinity, -kInfinity, kNan, 200.0f, -200.0f};
  std::array<float, 5> y{};
  kernels().exponential(x.data(), 5, y.data());
  EXPECT_EQ(y[0], kInfinity);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_EQ(y[4], 0.0f);
  kernels().hyperbolic_tangent(x.data(), 5, y.data());
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], -1.0f);
  EXPECT_TRUE(std::isnan(y[2]));
}

struct ProductSize {
  int64_t rows;
  int64_t depth;
  int64_t columns;
};

// Element (i, k) of a matrix that may be stored transposed.
float At(const std::vector<float>& data, bool transposed, int64_t rows, int64_t columns, int64_t i,
         int64_t k) {
  return data[static_cast<size_t>(transposed ? k * rows + i : i * columns + k)];
}

void ExpectProduct(const Kernels& kernels, const ProductSize& s, bool a_transposed,
                   bool b_transposed, bool with_bias, bool accumulate) {
  const std::vector<float> a = RandomValues(s.rows * s.depth, 1);
  const std::vector<float> b = RandomValues(s.depth * s.columns, 2);
  const std::vector<float> bias = RandomValues(s.columns, 3);
  const std::vector<float> before = RandomValues(s.rows * s.columns + 1, 4);
  std::vector<float> out = before;
  {
    const Matrix left{a.data(), s.rows, s.depth, a_transposed};
    const Matrix right{b.data(), s.depth, s.columns, b_transposed};
    MatrixProduct product(left, right, {accumulate, with_bias ? bias.data() : nullptr}, out.data(),
                          kernels);
    product.Run();
  }
  double worst = 0;
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      const auto index = static_cast<size_t>(i * s.columns + j);
      double sum = accumulate ? before[index] : with_bias ? bias[static_cast<size_t>(j)] : 0;
      for (int64_t k = 0; k < s.depth; ++k) {
        sum += static_cast<double>(At(a, a_transposed, s.rows, s.depth, i, k)) *
               At(b, b_transposed, s.depth, s.columns, k, j);
      }
      worst = std::max(worst, std::abs(out[index] - sum));
    }
  }
  EXPECT_LT(worst, 1e-5 * std::sqrt(static_cast<double>(s.depth)) * 3)
      << s.rows << "x" << s.depth << "x" << s.columns << " " << a_transposed << b_transposed
      << with_bias << accumulate;
  EXPECT_EQ(out.back(), before.back()) << "wrote behind the result";
}

TEST_P(KernelsTest, MatrixProductsOfEveryKindAndAwkwardSize) {
  // Full tiles; less than one tile; a remainder in every size; more than one block of depth and
  // rows.
  const ProductSize sizes[] = {{24, 64, 64}, {1, 1, 1}, {13, 20, 37}, {7, 300, 33}, {800, 9, 66}};
  for (const ProductSize& size : sizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        ExpectProduct(kernels(), size, a_transposed, b_transposed, false, false);
        ExpectProduct(kernels(), size, a_transposed, b_transposed, true, false);
        ExpectProduct(kernels(), size, a_transposed, b_transposed, false, true);
      }
    }
  }
}

TEST_P(KernelsTest, LargeMatrixProductsGoToTorch) {
  std::vector<float> memory(600 * 600 * 3);
  const Matrix a{memory.data(), 600, 600};
  EXPECT_TRUE(MatrixProduct(a, a, {}, memory.data() + 2 * 600 * 600, kernels()).uses_torch());
  ExpectProduct(kernels(), {530, 520, 510}, false, true, true, false);
  ExpectProduct(kernels(), {530, 520, 510}, true, false, false, true);
}

std::vector<float> LayerNormOf(const Kernels& kernels, const std::vector<float>& x, float epsilon) {
  const std::vector<float> ones(x.size(), 1.0f);
  const std::vector<float> zeros(x.size(), 0.0f);
  std::vector<float> y(x.size());
  float mean;
  float inverse;
  kernels.layer_norm_forward(x.data(), ones.data(), zeros.data(), epsilon, 1,
                             static_cast<long>(x.size()), y.data(), &mean, &inverse);
  return y;
}

TEST_P(KernelsTest, LayerNormPutsEpsilonInsideTheRoot) {
  EXPECT_NEAR(LayerNormOf(kernels(), {1e-3f, -1e-3f}, 1e-6f)[0], 0.70711, 1e-5);
  EXPECT_NEAR(LayerNormOf(kernels(), {1e-3f, -1e-3f}, 1e-5f)[1], -0.30151, 1e-5);
  const std::vector<float> y = LayerNormOf(kernels(), {1, 0, 0, 0}, 1e-6f);
  EXPECT_NEAR(y[0], 1.73205, 1e-5);
  EXPECT_NEAR(y[3], -0.57735, 1e-5);
  EXPECT_NEAR(LayerNormOf(kernels(), {1, 0, 0, 0}, 1e-5f)[0], 1.73200, 1e-5);
}

TEST_P(KernelsTest, LayerNormSurvivesALargeOffset) {
  std::vector<float> x = RandomValues(64, 9);
  for (float& value : x) value += 2000.0f;
  double square = 0;
  for (const float value : LayerNormOf(kernels(), x, 1e-6f)) square += value * value;
  EXPECT_NEAR(square / 64, 1.0, 1e-2);
}

TEST_P(KernelsTest, RmsNormMatchesItsFormulaAndKeepsAZeroRow) {
  const std::vector<float> x = {1, 2, 3, 4, 0, 0, 0, 0};
  const std::vector<float> ones(4, 1.0f);
  std::vector<float> y(8);
  std::vector<float> inverse(2);
  kernels().rms_norm_forward(x.data(), ones.data(), 1e-6f, 2, 4, y.data(), inverse.data());
  EXPECT_NEAR(y[0], 0.365148, 1e-6);
  EXPECT_NEAR(y[1], 0.730297, 1e-6);
  EXPECT_NEAR(y[2], 1.095445, 1e-6);
  EXPECT_NEAR(y[3], 1.460593, 1e-6);
  for (int i = 4; i < 8; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 0.0f);
}

TEST_P(KernelsTest, SumOfSquaresIsFiniteForEveryFiniteInput) {
  const std::vector<float> large(100, 3e38f);
  EXPECT_NEAR(kernels().sum_of_squares(large.data(), 100) / (100 * 9e76), 1.0, 1e-6);
  std::vector<float> x(100, 1.0f);
  x[70] = -kInfinity;
  EXPECT_EQ(kernels().sum_of_squares(x.data(), 100), std::numeric_limits<double>::infinity());
  x[20] = kNan;
  EXPECT_TRUE(std::isnan(kernels().sum_of_squares(x.data(), 100)));
}

TEST_P(KernelsTest, ANanScoreMakesTheRowsThatSeeItNan) {
  const long time = 20;
  const long width = 8;
  std::vector<float> qkv = RandomValues(time * 3 * width, 4);
  qkv[10 * 3 * width + width] = kNan;  // a key of position 10
  std::vector<float> out(time * width);
  std::vector<float> p(static_cast<size_t>(2 * time * AttentionStride(time)));
  std::vector<float> scratch(static_cast<size_t>(AttentionScratch(time, width / 2)));
  kernels().attention_forward(qkv.data(), 1, time, width, 2, true, p.data(), out.data(),
                              scratch.data());
  for (long t = 0; t < time; ++t) {
    EXPECT_EQ(std::isnan(out[static_cast<size_t>(t * width)]), t >= 10) << t;
  }
}

TEST(Kernels, AnUnknownInstructionSetIsNotFound) {
  EXPECT_EQ(FindKernels("avx1024"), nullptr);
  EXPECT_NE(FindKernels("baseline"), nullptr);
}

}  // namespace
}  // namespace normlab::trainer
