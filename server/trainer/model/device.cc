#include "server/trainer/model/device.h"

#include <map>
#include <stdexcept>

#include "server/trainer/model/cuda_device.h"

namespace normlab::trainer {
namespace {

std::map<std::string, Device*>& RegisteredDevices() {
  static std::map<std::string, Device*> devices;
  return devices;
}

}  // namespace

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

void RegisterDevice(const std::string& name, Device& device) {
  RegisteredDevices()[name] = &device;
}

}  // namespace normlab::trainer
