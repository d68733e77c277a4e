#include "server/scheduler/nvml.h"

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The library of tests/fakes/fake_nvml.c, and the file it reads.
class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() { setenv("FAKE_NVML", file_.c_str(), 1); }
  ~NvmlTest() override { unsetenv("FAKE_NVML"); }
  void Machine(const std::string& text) { std::ofstream(file_) << text; }

  fakes::TempDir dir_;
  const std::string file_ = dir_.path() / "gpus";
};

TEST_F(NvmlTest, EightGpusWithMemoryUseAndProcesses) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += "gpu GPU-" + std::to_string(i) + " 81559 " + std::to_string(500 + i) +
            " 7 NVIDIA H100 80GB HBM3\n";
  }
  Machine(text + "process 4711 400\nprocess 4712 -1\n");
  const std::unique_ptr<GpuSource> nvml = OpenNvml(NORMLAB_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const std::vector<GpuReading> gpus = nvml->Read();
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_EQ(gpus[3].id, "gpu:3");
  EXPECT_EQ(gpus[3].uuid, "GPU-3");
  EXPECT_EQ(gpus[3].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpus[3].memory_bytes, int64_t{81559} << 20);
  EXPECT_EQ(gpus[3].used_bytes, int64_t{503} << 20);
  EXPECT_DOUBLE_EQ(gpus[3].utilization.value(), 0.07);
  EXPECT_THAT(gpus[3].processes, IsEmpty());
  ASSERT_EQ(gpus[7].processes.size(), 2u);
  EXPECT_EQ(gpus[7].processes[0].pid, 4711);
  EXPECT_EQ(gpus[7].processes[0].memory_bytes, int64_t{400} << 20);
  EXPECT_EQ(gpus[7].processes[1].memory_bytes, std::nullopt);
}

TEST_F(NvmlTest, ManyProcessesAreAllListed) {
  std::string text = "gpu GPU-0 1000 900 0 small\n";
  for (int i = 1; i <= 60; ++i) text += "process " + std::to_string(i) + " 1\n";
  Machine(text);
  EXPECT_EQ(OpenNvml(NORMLAB_FAKE_NVML)->Read()[0].processes.size(), 60u);
}

TEST_F(NvmlTest, InstancesStandForADividedGpu) {
  Machine(
      "gpu GPU-0 81559 1000 3 whole\n"
      "gpu GPU-1 81559 1000 3 divided\n"
      "mig MIG-a 20096 10 slice 1g\nprocess 99 5\n"
      "mig MIG-b 40192 20 slice 3g\n"
      "gpu GPU-2 81559 1000 3 divided into nothing\ndivided\n");
  const std::vector<GpuReading> gpus = OpenNvml(NORMLAB_FAKE_NVML)->Read();
  EXPECT_THAT(gpus,
              ElementsAre(Field(&GpuReading::id, "gpu:0"), Field(&GpuReading::id, "gpu:1:0"),
                          Field(&GpuReading::id, "gpu:1:1"), Field(&GpuReading::id, "gpu:2")));
  EXPECT_EQ(gpus[1].uuid, "MIG-a");
  EXPECT_EQ(gpus[1].memory_bytes, int64_t{20096} << 20);
  EXPECT_EQ(gpus[1].processes.size(), 1u);
  EXPECT_EQ(gpus[1].utilization, std::nullopt);
  EXPECT_EQ(gpus[1].fault, "");
  EXPECT_THAT(gpus[3].fault, HasSubstr("no instance"));
}

TEST_F(NvmlTest, OneThatFellOffTheBusIsStillKnown) {
  Machine("gpu GPU-0 81559 1000 3 first\ngpu GPU-1 81559 1000 3 second\n");
  const std::unique_ptr<GpuSource> nvml = OpenNvml(NORMLAB_FAKE_NVML);
  EXPECT_EQ(nvml->Read()[1].fault, "");
  Machine("gpu GPU-0 81559 1000 3 first\ngpu GPU-1 81559 1000 3 second\nlost\n");
  const std::vector<GpuReading> gpus = nvml->Read();
  EXPECT_EQ(gpus[0].fault, "");
  EXPECT_EQ(gpus[1].fault, "the driver says: GPU is lost");
  EXPECT_EQ(gpus[1].uuid, "GPU-1");
  EXPECT_EQ(gpus[1].memory_bytes, int64_t{81559} << 20);
}

TEST_F(NvmlTest, NoLibraryAndNoDriverAreNormal) {
  EXPECT_EQ(OpenNvml("/nowhere/libnvidia-ml.so.1"), nullptr);
  unsetenv("FAKE_NVML");  // the library is there, its driver is not
  EXPECT_EQ(OpenNvml(NORMLAB_FAKE_NVML), nullptr);
}

}  // namespace
}  // namespace normlab::scheduler
