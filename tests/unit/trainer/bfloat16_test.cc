// bf16 products against references that round at the same places and add in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "server/trainer/model/components/attend.h"
#include "server/trainer/model/components/components.h"
#include "tests/unit/trainer/model_run.h"
#include "tests/unit/trainer/probe.h"

namespace normlab::trainer {
namespace {

// The nearest number with eight significant bits, ties to even.
double Rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const double quantum = std::ldexp(1.0, std::max(exponent, -125) - 8);
  const double rounded = std::nearbyint(x / quantum) * quantum;
  const double largest = std::ldexp(255.0, 120);
  if (std::abs(rounded) > largest) return std::copysign(HUGE_VAL, x);
  return rounded;
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x7F800000u; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    x.push_back(-x.back());
  }
  for (uint32_t bits = 0x3F800000u; bits < 0x3F880000u; bits += 0x8000u) {  // all ties
    x.push_back(std::bit_cast<float>(bits));
  }
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> y(x.size());
    kernels->round_to_bfloat16(x.data(), static_cast<long>(x.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], Rounded(x[i])) << x[i];
  }
}

TEST(Bfloat16, KeepsInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float narrow_nan = std::bit_cast<float>(0x7F800001u);  // its bits are all in the lost half
  const std::vector<float> x = {infinity, -infinity, narrow_nan, std::bit_cast<float>(0xFFFFFFFFu),
                                3.4e38f};
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> y(x.size());
    kernels->round_to_bfloat16(x.data(), 5, y.data());
    EXPECT_EQ(y[0], infinity);
    EXPECT_EQ(y[1], -infinity);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], infinity);
  }
}

// a [rows, depth] times b [depth, columns], from rounded operands.
std::vector<double> Product(const std::vector<double>& a, const std::vector<double>& b,
                            size_t depth, size_t columns) {
  const size_t rows = a.size() / depth;
  std::vector<double> c(rows * columns, 0.0);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < columns; ++j) {
        c[i * columns + j] += Rounded(a[i * depth + k]) * Rounded(b[k * columns + j]);
      }
    }
  }
  return c;
}

std::vector<double> Transposed(const std::vector<double>& a, size_t columns) {
  const size_t rows = a.size() / columns;
  std::vector<double> t(a.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

std::vector<double> AllRounded(std::vector<double> values) {
  for (double& value : values) value = Rounded(value);
  return values;
}

template <typename Values>
std::vector<double> Doubles(const Values& values) {
  return {values.begin(), values.end()};
}

// Sums in another order can fall on the other side of a tie, and what follows from that differs by
// a few units; nearly all are the same to the bit.
template <typename Values>
void ExpectSameRounding(const Values& actual, const std::vector<double>& expected,
                        const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  size_t same = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    same += static_cast<double>(actual[i]) == expected[i] ? 1 : 0;
    EXPECT_NEAR(actual[i], expected[i], largest / 64) << what << " " << i;
  }
  EXPECT_GT(static_cast<double>(same), 0.97 * static_cast<double>(expected.size())) << what;
}

TEST(Bfloat16, LinearRoundsOperandsAndResult) {
  Probe probe(2, 16, 24, [](Value x) {
    x.program->set_precision(Precision::kBf16);
    return Linear("l", 40, Role::kInput, true, x);
  });
  probe.Run();
  const auto x = Doubles(probe.input());
  const auto w = Doubles(probe.weights(0));
  const auto dy = Doubles(probe.output_gradient());
  std::vector<double> y = Product(x, w, 24, 40);
  for (size_t i = 0; i < y.size(); ++i) y[i] += Rounded(probe.weights(1)[i % 40]);
  ExpectSameRounding(probe.output(), AllRounded(y), "y");
  ExpectSameRounding(probe.input_gradient(), AllRounded(Product(dy, Transposed(w, 40), 40, 24)),
                     "dx");
  // Gradients of weights are fp32: exact to the sums' own rounding.
  const std::vector<double> dw = Product(Transposed(x, 24), dy, 32, 40);
  for (size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(probe.gradient(0)[i], dw[i], 1e-4);
  for (size_t j = 0; j < 40; ++j) {
    double sum = 0;
    for (size_t row = 0; row < 32; ++row) sum += Rounded(dy[row * 40 + j]);
    EXPECT_NEAR(probe.gradient(1)[j], sum, 1e-5);
  }
}

// One sequence and one head: columns [first, first + 8) of qkv [time, 24].
std::vector<double> Part(const std::vector<double>& qkv, size_t first) {
  std::vector<double> part;
  for (size_t i = 0; i < qkv.size(); ++i) {
    if (i % 24 >= first && i % 24 < first + 8) part.push_back(qkv[i]);
  }
  return part;
}

TEST(Bfloat16, AttentionRoundsScoresProbabilitiesAndResult) {
  const size_t time = 16;
  Probe probe(1, 16, 24, [](Value x) {
    x.program->set_precision(Precision::kBf16);
    return Attend({.width = 8,
                   .heads = 1,
                   .queries = {x, 0},
                   .keys = {x, 8},
                   .values = {x, 16},
                   .sight = Sight::kPast});
  });
  probe.Run();
  const auto qkv = Doubles(probe.input());
  const auto q = Part(qkv, 0);
  const auto k = Part(qkv, 8);
  const auto v = Part(qkv, 16);
  const auto dy = Doubles(probe.output_gradient());
  const double scale = 1 / std::sqrt(8.0);
  const std::vector<double> scores = AllRounded(Product(q, Transposed(k, 8), 8, time));
  const std::vector<double> dp = AllRounded(Product(dy, Transposed(v, 8), 8, time));
  std::vector<double> p(time * time, 0.0);
  std::vector<double> ds(time * time, 0.0);
  for (size_t i = 0; i < time; ++i) {
    double sum = 0;
    for (size_t j = 0; j <= i; ++j) sum += p[i * time + j] = std::exp(scale * scores[i * time + j]);
    double mean = 0;
    for (size_t j = 0; j <= i; ++j) mean += (p[i * time + j] /= sum) * dp[i * time + j];
    for (size_t j = 0; j <= i; ++j) {
      ds[i * time + j] = p[i * time + j] * (dp[i * time + j] - mean) * scale;
    }
  }
  ExpectSameRounding(probe.output(), AllRounded(Product(p, v, time, 8)), "y");
  const auto gradient = Doubles(probe.input_gradient());
  ExpectSameRounding(Part(gradient, 0), AllRounded(Product(ds, k, time, 8)), "dq");
  ExpectSameRounding(Part(gradient, 8), AllRounded(Product(Transposed(ds, time), q, time, 8)),
                     "dk");
  ExpectSameRounding(Part(gradient, 16), AllRounded(Product(Transposed(p, time), dy, time, 8)),
                     "dv");
}

TEST(Bfloat16, ChangesAModelALittleAndOnlyWhenAskedFor) {
  TrainingSettings settings = SmallModel();
  ModelRun exact(settings);
  settings.precision = "bf16";
  ModelRun rounded(settings);
  const std::vector<float> a = exact.ForwardAndBack();
  const std::vector<float> b = rounded.ForwardAndBack();
  EXPECT_NE(a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 0.1);
    EXPECT_EQ(b[i], Rounded(b[i]));  // the head is a product as well
  }
}

}  // namespace
}  // namespace normlab::trainer
