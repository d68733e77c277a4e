#include "server/domain/early_stop.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/non_finite.h"

namespace normlab::domain {
namespace {

v1::EarlyStop Rule(double quantile, int32_t minimum_peers = 0) {
  v1::EarlyStop rule;
  rule.set_quantile(quantile);
  rule.set_minimum_peers(minimum_peers);
  return rule;
}

TEST(EarlyStopTest, QuantilesAreThoseOfNumPy) {
  // numpy.quantile([3, 1, 4, 1.5, 9], q)
  for (const auto& [q, expected] : std::initializer_list<std::pair<double, double>>{
           {0, 1}, {.25, 1.5}, {.5, 3}, {.6, 3.4}, {.9, 7}, {1, 9}}) {
    EXPECT_DOUBLE_EQ(Quantile({3, 1, 4, 1.5, 9}, q), expected) << q;
  }
  EXPECT_EQ(Quantile({2}, .3), 2);
}

TEST(EarlyStopTest, QuantilesAmongInfinitiesAreNeverNaN) {
  EXPECT_EQ(Quantile({1, kInfinity, kInfinity}, .5), kInfinity);
  EXPECT_EQ(Quantile({1, 2, kInfinity}, .5), 2);
  EXPECT_EQ(Quantile({1, 2, kInfinity}, .6), kInfinity);
  EXPECT_EQ(Quantile({kInfinity, kInfinity}, .4), kInfinity);
}

TEST(EarlyStopTest, ARunAboveTheQuantileIsStoppedAndToldWhy) {
  EXPECT_EQ(WhyStopEarly(Rule(.5), 60, 3.2, {1.9, 1.5, 4}),
            "stopped early at step 60: loss 3.2 is above the 0.5 quantile, 1.9, of 3 peers");
  EXPECT_EQ(WhyStopEarly(Rule(.5), 60, 1.9, {1.9, 1.5, 4}), "");  // not above
  EXPECT_EQ(WhyStopEarly(Rule(.9), 60, 3.2, {1.9, 1.5, 4}), "");
}

TEST(EarlyStopTest, ThreePeersAreNeededUnlessSaidOtherwise) {
  EXPECT_EQ(WhyStopEarly(Rule(.5), 60, 9, {1, 1}), "");
  EXPECT_NE(WhyStopEarly(Rule(.5, 2), 60, 9, {1, 1}), "");
  EXPECT_EQ(WhyStopEarly(Rule(.5, 1), 60, 9, {1}),
            "stopped early at step 60: loss 9 is above the 0.5 quantile, 1, of 1 peer");
  EXPECT_EQ(WhyStopEarly(Rule(.5, 5), 60, 9, {1, 1, 1, 1}), "");
}

TEST(EarlyStopTest, WhatDivergedIsWorseThanEveryNumberAndNotThanItself) {
  EXPECT_EQ(WhyStopEarly(Rule(.5), 5, 3.2, {kInfinity, kNan, 1}), "");
  EXPECT_EQ(WhyStopEarly(Rule(.5), 5, kNan, {kInfinity, kNan, 1}), "");
  EXPECT_EQ(WhyStopEarly(Rule(.5), 5, kNan, {3, 2, 1}),
            "stopped early at step 5: loss that is not finite is above the 0.5 quantile, 2, of 3 "
            "peers");
  EXPECT_NE(WhyStopEarly(Rule(.5), 5, -kInfinity, {3, 2, 1}), "");
}

TEST(EarlyStopTest, IsKnownByItsReason) {
  v1::EarlyStop rule;
  rule.set_quantile(0.5);
  v1::Run run;
  run.set_state(v1::Run::STATE_CANCELLED);
  run.set_end_reason(WhyStopEarly(rule, 40, 3.2, {1, 2, 3}));
  EXPECT_TRUE(WasStoppedEarly(run)) << run.end_reason();
  run.set_state(v1::Run::STATE_FAILED);
  EXPECT_FALSE(WasStoppedEarly(run));
  run.set_state(v1::Run::STATE_CANCELLED);
  run.set_end_reason("cancelled by ann while it was queued");
  EXPECT_FALSE(WasStoppedEarly(run));
}

}  // namespace
}  // namespace normlab::domain
