#include "server/scheduler/fair_share.h"

#include "gtest/gtest.h"

namespace normlab::scheduler {
namespace {

constexpr double kDay = 24 * 3600;

TEST(FairShareTest, WhatWasUsedADayAgoCountsHalf) {
  EXPECT_DOUBLE_EQ(UsageLeft(0), 1);
  EXPECT_DOUBLE_EQ(UsageLeft(kDay), 0.5);
  EXPECT_DOUBLE_EQ(UsageLeft(2 * kDay), 0.25);
}

TEST(FairShareTest, AHoldingIsTheSumOfItsDecayedSeconds) {
  double sum = 0;
  for (int second = 0; second < 1000; ++second) sum += 3 * UsageLeft(second + 0.5);
  EXPECT_NEAR(UsageOfHolding(3, 1000), sum, 1e-6 * sum);
}

TEST(FairShareTest, TheLedgerDoesNotCareWhenItIsAsked) {
  UsageLedger asked_once, asked_often;
  for (UsageLedger* ledger : {&asked_once, &asked_often}) {
    ledger->AddPast("ann", 1, 3600, kDay, 10);
    ledger->Take("run", "ann", 2, 10);
  }
  for (double now = 10; now < 10 + kDay; now += 1000) asked_often.At(now);
  for (UsageLedger* ledger : {&asked_once, &asked_often}) ledger->Return("run", 10 + kDay);
  const double now = 10 + 2 * kDay;
  const double expected =
      UsageOfHolding(1, 3600) * UsageLeft(3 * kDay) + UsageOfHolding(2, kDay) * UsageLeft(kDay);
  EXPECT_NEAR(asked_once.At(now).at("ann"), expected, 1e-6 * expected);
  EXPECT_NEAR(asked_often.At(now).at("ann"), expected, 1e-6 * expected);
}

TEST(FairShareTest, WhatRunsNowCountsAsItGoes) {
  UsageLedger ledger;
  ledger.Take("run", "ann", 4, 100);
  EXPECT_NEAR(ledger.At(110).at("ann"), 40, 0.01);
  ledger.Take("run", "ann", 4, 105);  // known already
  EXPECT_NEAR(ledger.At(110).at("ann"), 40, 0.01);
  ledger.Return("run", 110);
  ledger.Return("run", 120);
  EXPECT_NEAR(ledger.At(110).at("ann"), 40, 0.01);
  EXPECT_TRUE(ledger.At(110 + 60 * kDay).empty());
}

}  // namespace
}  // namespace normlab::scheduler
