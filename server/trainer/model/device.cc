#include "server/trainer/model/device.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "server/trainer/model/cuda_device.h"
#include "server/trainer/trainer.h"

namespace normlab::trainer {
namespace {

std::map<std::string, Device*>& RegisteredDevices() {
  static std::map<std::string, Device*> devices;
  return devices;
}

}  // namespace

void* Device::Allocate(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);  // so that it has an address of its own
  void* data = budget_.Allows(bytes) ? AllocateOnDevice(bytes) : nullptr;
  if (data == nullptr) throw std::runtime_error(budget_.Refusal(bytes, Memory()));
  allocated_[data] = bytes;
  budget_.Take(bytes);
  return data;
}

void Device::Free(void* data) noexcept {
  const auto found = allocated_.find(data);
  if (found != allocated_.end()) {
    budget_.Return(found->second);
    allocated_.erase(found);
  }
  FreeOnDevice(data);
}

Device* FindDevice(const std::string& name) {
  if (name == "cpu") return nullptr;
  const auto registered = RegisteredDevices().find(name);
  if (registered != RegisteredDevices().end()) return registered->second;
  if (name != "cuda") {
    throw std::runtime_error("device \"" + name + "\" is not known; known are cpu, cuda");
  }
#ifdef NORMLAB_WITH_CUDA
  return &CudaDevice();
#else
  throw std::runtime_error(
      "device \"cuda\": this normlab was built without CUDA; it needs nvcc and a torch with CUDA "
      "when it is built (docs/gpu.md)");
#endif
}

int64_t GpusOfARun() {
#ifdef NORMLAB_WITH_CUDA
  return 1;
#else
  return 0;
#endif
}

void RegisterDevice(const std::string& name, Device& device) {
  RegisteredDevices()[name] = &device;
}

}  // namespace normlab::trainer
