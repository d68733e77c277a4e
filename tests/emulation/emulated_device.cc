#include "tests/emulation/emulated_device.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "tests/emulation/launch_emulated.h"

#define NORMLAB_DEVICE_NAME "emulated"
#define NORMLAB_DEVICE_PRODUCTS Products::kOwnKernel
#include "server/trainer/model/kernels/device/table.h"

namespace normlab::trainer {
namespace {

class EmulatedDeviceImpl final : public Device {
 public:
  std::string Description() const override { return "emulated"; }
  const Kernels& kernels() const override { return kDeviceKernels; }
  const StepKernels& step_kernels() const override { return kDeviceStepKernels; }
  void UseOnThisThread() override {}

  void* AllocateShared(size_t bytes) override {
    auto memory = std::make_unique<char[]>(bytes);
    void* data = memory.get();
    shared_[static_cast<char*>(data)] = {std::move(memory), bytes};
    return data;
  }
  void FreeShared(void* data) noexcept override { shared_.erase(static_cast<char*>(data)); }

  void CopyIn(const void* host, void* device, size_t bytes) override {
    stream_.Give([=] { std::memcpy(device, host, bytes); });
    if (!IsShared(static_cast<const char*>(host))) stream_.Wait();
  }
  void CopyOut(const void* device, void* host, size_t bytes) override {
    stream_.Give([=] { std::memcpy(host, device, bytes); });
    stream_.Wait();
  }
  void Wait() override { stream_.Wait(); }
  bool IsIdle() override { return stream_.IsIdle(); }

  void BeginRecording() override { stream_.BeginRecording(); }
  void EndRecording() override { stream_.EndRecording(); }
  void Replay() override { stream_.Replay(); }

 protected:
  void* AllocateOnDevice(size_t bytes) override { return stream_.memory().Allocate(bytes); }
  void FreeOnDevice(void* /*data*/) noexcept override {
    stream_.Wait();
    stream_.memory().Free();
  }
  DeviceMemory Memory() const override {
    return {.free = stream_.memory().free(), .total = FencedMemory::kRoom};
  }

 private:
  struct Shared {
    std::unique_ptr<char[]> memory;
    size_t bytes = 0;
  };

  bool IsShared(const char* data) const {
    const auto after = shared_.upper_bound(const_cast<char*>(data));
    if (after == shared_.begin()) return false;
    const auto& [begin, shared] = *std::prev(after);
    return data < begin + shared.bytes;
  }

  EmulatedStream& stream_ = EmulatedStream::Get();
  std::map<char*, Shared> shared_;
};

}  // namespace

Device& EmulatedDevice(const Emulation& emulation) {
  static EmulatedDeviceImpl device;
  RegisterDevice("emulated", device);
  EmulatedStream::Get().Configure(emulation);
  return device;
}

const Kernels& EmulatedKernels() { return kDeviceKernels; }

}  // namespace normlab::trainer
