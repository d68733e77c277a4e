#include "server/trainer/model/kernels/kernels.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace normlab::trainer {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

const Kernels* FindKernels(const char* instruction_set) {
  const std::string_view name = instruction_set;
  if (name == "baseline") return &kBaselineKernels;
#if defined(__x86_64__)
  if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return &kAvx2Kernels;
  }
  if (name == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("fma")) {
    return &kAvx512Kernels;
  }
#endif
  return nullptr;
}

const Kernels& BestKernels() {
  if (const char* wanted = std::getenv("NORMLAB_INSTRUCTION_SET")) {
    if (const Kernels* kernels = FindKernels(wanted)) return *kernels;
    throw std::runtime_error(std::string("NORMLAB_INSTRUCTION_SET: \"") + wanted +
                             "\" is not one this processor has");
  }
  for (const char* name : {"avx512", "avx2"}) {
    if (const Kernels* kernels = FindKernels(name)) return *kernels;
  }
  return kBaselineKernels;
}

}  // namespace normlab::trainer
