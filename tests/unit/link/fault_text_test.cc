#include "server/trainer/link/fault_text.h"

#include <gtest/gtest.h>

namespace normlab::trainer {
namespace {

TEST(FaultTextTest, AnyOtherFaultIsAsItWas) {
  EXPECT_EQ(FaultText("shape [2, 3] is not [3, 2]", 1 << 30), "shape [2, 3] is not [3, 2]");
  EXPECT_EQ(FaultText("out of memory: asked for 12 MiB", 0), "out of memory: asked for 12 MiB");
}

TEST(FaultTextTest, AFullGpuIsToldWithItsSizesAndTheBudget) {
  EXPECT_EQ(FaultText("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity "
                      "of 139.81 GiB of which 1.25 GiB is free. Process 4711 has 138.56 GiB memory "
                      "in use.",
                      int64_t{4} << 30),
            "out of GPU memory: it wanted 2.50 GiB more, 1.25 GiB of 139.81 GiB were free; its "
            "budget is 4.00 GiB");
  EXPECT_EQ(FaultText("out of GPU memory: asked for 2560 MiB; 1280 MiB of 143165 MiB are free", 0),
            "out of GPU memory: it wanted 2560 MiB more, 1280 MiB of 143165 MiB were free; its "
            "budget is the whole GPU");
}

TEST(FaultTextTest, ASizeThatIsNotSaidIsUnknown) {
  EXPECT_EQ(FaultText("CUDA out of memory.", 0),
            "out of GPU memory: it wanted an unknown amount more, an unknown amount of an unknown "
            "amount were free; its budget is the whole GPU");
}

}  // namespace
}  // namespace normlab::trainer
