#include "server/trainer/link/fault_text.h"

#include <gtest/gtest.h>

namespace normlab::trainer {
namespace {

TEST(FaultTextTest, AnyOtherFaultIsAsItWas) {
  EXPECT_EQ(FaultText("shape [2, 3] is not [3, 2]", 1 << 30), "shape [2, 3] is not [3, 2]");
  EXPECT_EQ(FaultText("out of memory: asked for 12 MiB", 0), "out of memory: asked for 12 MiB");
}

TEST(FaultTextTest, TheEnginesOwnSizesAreAsTheyWere) {
  const std::string what = "out of GPU memory: asked for 12 MiB, held 3 MiB, its budget is 9 MiB";
  EXPECT_EQ(FaultText(what, int64_t{9} << 20), what);
}

TEST(FaultTextTest, WhatLibTorchSaysOfAFullGpuIsToldInTheSameWordsWithTheBudget) {
  EXPECT_EQ(FaultText("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity "
                      "of 139.81 GiB of which 1.25 GiB is free. Process 4711 has 135.00 GiB memory "
                      "in use. Including non-PyTorch memory, this process has 3.56 GiB memory in "
                      "use. Of the allocated memory 3.00 GiB is allocated by PyTorch.",
                      int64_t{4} << 30),
            "out of GPU memory: asked for 2.50 GiB, held 3.56 GiB, its budget is 4.00 GiB; the GPU "
            "has 1.25 GiB of 139.81 GiB free; others hold what is missing: try again when they "
            "have ended, or ask for it alone (--exclusive)");
}

TEST(FaultTextTest, ASizeThatIsNotSaidIsUnknown) {
  EXPECT_EQ(FaultText("CUDA out of memory.", 0),
            "out of GPU memory: asked for an unknown amount, held an unknown amount, its budget is "
            "the whole GPU; the GPU has an unknown amount of an unknown amount free; make "
            "batch_size or the model smaller");
}

}  // namespace
}  // namespace normlab::trainer
