#include "server/app/submit_checks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/domain/spec.h"

namespace normlab::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kGiB = int64_t{1} << 30;

std::vector<scheduler::Device> Machine() {
  using scheduler::DeviceKind;
  return {{.id = "cpu:0"},
          {.id = "gpu:0", .kind = DeviceKind::kGpu, .memory_bytes = 24 * kGiB},
          {.id = "gpu:1", .kind = DeviceKind::kGpu, .memory_bytes = 80 * kGiB}};
}

v1::Resources Asked(int32_t gpus, int64_t memory, bool exclusive = false) {
  v1::Resources resources;
  resources.set_gpus(gpus);
  resources.set_gpu_memory_bytes(memory);
  resources.set_exclusive(exclusive);
  return resources;
}

v1::Run RunOn(const std::string& device, const v1::Resources& asked) {
  v1::Run run;
  run.set_device(device);
  *run.mutable_resources() = asked;
  return run;
}

std::vector<domain::FieldViolation> Check(const std::string& device, const v1::Resources& asked,
                                          std::vector<scheduler::Device> machine = Machine(),
                                          int64_t gpus_of_a_run = 8) {
  return CheckResources("", RunOn(device, asked), machine, gpus_of_a_run);
}

TEST(SubmitChecksTest, WhatTheMachineHasMayBeAskedFor) {
  EXPECT_THAT(Check("auto", Asked(0, 0)), IsEmpty());
  EXPECT_THAT(Check("cpu", Asked(0, 0)), IsEmpty());
  EXPECT_THAT(Check("gpu", Asked(2, 80 * kGiB, true)), IsEmpty());
  EXPECT_THAT(Check("gpu:0", Asked(1, 24 * kGiB)), IsEmpty());
}

TEST(SubmitChecksTest, MoreThanThereIsIsRefusedWithTheNumbers) {
  const auto wrong = Check("gpu", Asked(3, 80 * kGiB + 1));
  ASSERT_THAT(wrong, SizeIs(2));
  EXPECT_EQ(wrong[0].field, "resources.gpus");
  EXPECT_EQ(wrong[0].description, "3 are asked for and this machine has 2");
  EXPECT_EQ(wrong[1].field, "resources.gpu_memory_bytes");
  EXPECT_THAT(wrong[1].description,
              HasSubstr("the largest GPU, gpu:1, has 85899345920 (80.0 GiB)"));
}

TEST(SubmitChecksTest, ANamedDeviceIsTheMeasure) {
  const auto wrong = Check("gpu:0", Asked(2, 40 * kGiB));
  ASSERT_THAT(wrong, SizeIs(2));
  EXPECT_THAT(wrong[0].description, HasSubstr("gpu:0 is one; use device gpu"));
  EXPECT_THAT(wrong[1].description, HasSubstr("gpu:0, has 25769803776 (24.0 GiB)"));
}

TEST(SubmitChecksTest, NothingOfAGpuOnACpu) {
  for (const v1::Resources& asked : {Asked(1, 0), Asked(0, 1), Asked(0, 0, true)}) {
    for (const char* device : {"cpu", "cpu:0"}) {
      const auto wrong = Check(device, asked);
      ASSERT_THAT(wrong, SizeIs(1));
      EXPECT_EQ(wrong[0].field, "resources");
      EXPECT_THAT(wrong[0].description, HasSubstr("use device gpu"));
    }
  }
  const auto without = Check("auto", Asked(1, kGiB), {{.id = "cpu:0"}});
  ASSERT_THAT(without, SizeIs(2));
  EXPECT_THAT(without[0].description, HasSubstr("1 are asked for and this machine has no GPU"));
  EXPECT_THAT(without[1].description, HasSubstr("has no GPU"));
}

TEST(SubmitChecksTest, MoreGpusThanATrainerUsesAreRefused) {
  EXPECT_THAT(Check("gpu", Asked(1, 0), Machine(), 1), IsEmpty());
  const auto wrong = Check("gpu", Asked(2, 0), Machine(), 1);
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_EQ(wrong[0].field, "resources.gpus");
  EXPECT_THAT(wrong[0].description,
              HasSubstr("2 are asked for and a trainer of this normlab uses 1"));
}

TEST(SubmitChecksTest, LessMemoryThanCudaItselfTakesIsRefused) {
  const auto wrong = Check("gpu", Asked(1, kGiB / 2));
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_EQ(wrong[0].field, "resources.gpu_memory_bytes");
  EXPECT_THAT(wrong[0].description, HasSubstr("(0.5 GiB) are asked for and CUDA itself is counted "
                                              "with 1.0 GiB"));
}

TEST(SubmitChecksTest, AModelThatNoGpuHoldsIsRefusedUnlessACpuWillDo) {
  v1::Run run = RunOn("gpu", {});
  v1::RunSpec spec;
  spec.set_layers(100);
  spec.set_d_model(4096);
  *run.mutable_effective_spec() = domain::EffectiveSpec(spec);  // 20 billion numbers
  const auto wrong = CheckResources("", run, Machine(), 1);
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_EQ(wrong[0].field, "resources.gpu_memory_bytes");
  EXPECT_THAT(wrong[0].description, HasSubstr("the largest, gpu:1, has 80.0 GiB"));
  run.set_device("auto");
  EXPECT_THAT(CheckResources("", run, Machine(), 1), IsEmpty());
}

TEST(SubmitChecksTest, GpusThatNoTrainerCanUseDoNotCountAndTheReasonIsTold) {
  std::vector<scheduler::Device> machine = Machine();
  for (scheduler::Device& device : machine) {
    if (device.kind != scheduler::DeviceKind::kGpu) continue;
    device.unavailable_reason = "built without CUDA";
    device.unavailable_for_good = true;
  }
  const auto wrong = Check("auto", Asked(1, 4 * kGiB), machine);
  ASSERT_THAT(wrong, SizeIs(2));
  EXPECT_THAT(wrong[0].description, HasSubstr("no GPU can be used: built without CUDA"));
  EXPECT_THAT(wrong[1].description, HasSubstr("no GPU can be used: built without CUDA"));
}

TEST(SubmitChecksTest, NegativeNumbersAreRefused) {
  const auto wrong = Check("gpu", Asked(-1, -1));
  ASSERT_THAT(wrong, SizeIs(2));
  EXPECT_THAT(wrong[0].description, HasSubstr("-1 is negative"));
  EXPECT_THAT(wrong[1].description, HasSubstr("-1 is negative"));
}

TEST(SubmitChecksTest, HighIsForAdmins) {
  const Principal member{"lab1", "member"}, admin{"boss", "admin"};
  for (const char* priority : {"", "low", "normal"}) {
    EXPECT_TRUE(MayGive(member, "priority", priority).ok());
    EXPECT_THAT(CheckPriority("priority", priority), IsEmpty());
  }
  EXPECT_TRUE(MayGive(admin, "priority", "high").ok());
  const absl::Status refused = MayGive(member, "priority", "high");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("lab1 is a member; use normal or low"));
  const auto wrong = CheckPriority("experiment.runs[1].priority", "urgent");
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_EQ(wrong[0].field, "experiment.runs[1].priority");
  EXPECT_THAT(wrong[0].description, HasSubstr("high, normal, low"));
}

TEST(SubmitChecksTest, RunsOfAnExperimentMaySayTheirOwn) {
  v1::CreateExperimentRequest request;
  request.set_priority("low");
  request.set_held(true);
  request.add_after()->set_run("A");
  request.mutable_resources()->set_gpus(2);
  v1::Run plain;
  ApplyDefaults(request, plain);
  EXPECT_EQ(plain.priority(), "low");
  EXPECT_TRUE(plain.held());
  EXPECT_EQ(plain.after(0).run(), "A");
  EXPECT_EQ(plain.resources().gpus(), 2);
  v1::Run own;
  own.set_priority("normal");
  own.add_after()->set_run("B");
  own.mutable_resources()->set_exclusive(true);
  ApplyDefaults(request, own);
  EXPECT_EQ(own.priority(), "normal");
  ASSERT_EQ(own.after_size(), 1);
  EXPECT_EQ(own.after(0).run(), "B");
  EXPECT_EQ(own.resources().gpus(), 0);
}

}  // namespace
}  // namespace normlab::app
