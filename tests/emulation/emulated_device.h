// A device that is none: the kernels that run on a GPU, run on the host. For tests.
#ifndef NORMLAB_TESTS_EMULATION_EMULATED_DEVICE_H_
#define NORMLAB_TESTS_EMULATION_EMULATED_DEVICE_H_

#include "server/trainer/model/device.h"
#include "tests/emulation/stream.h"

namespace normlab::trainer {

// Known to FindDevice() as "emulated" from the first call on. Nothing may live on it at that time.
Device& EmulatedDevice(const Emulation& emulation = {});

// Its kernels, for programs in ordinary memory.
const Kernels& EmulatedKernels();

}  // namespace normlab::trainer

#endif  // NORMLAB_TESTS_EMULATION_EMULATED_DEVICE_H_
