// A processor with memory of its own, on which a program may live instead of on the host.
//
// Work is given to a device in order and done in that order, while the host goes on: only CopyOut()
// and Wait() wait for it. Host code never touches memory from Allocate(). There is one device of a
// name in a process, and one thread at a time uses it.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_DEVICE_H_
#define NORMLAB_SERVER_TRAINER_MODEL_DEVICE_H_

#include <cstddef>
#include <map>
#include <string>

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/step_kernels.h"
#include "server/trainer/model/memory_budget.h"

namespace normlab::trainer {

class Device {
 public:
  virtual ~Device() = default;

  // What it is, for people: "NVIDIA H200".
  virtual std::string Description() const = 0;

  // Their pointers are to memory of this device, or from AllocateShared().
  virtual const Kernels& kernels() const = 0;
  virtual const StepKernels& step_kernels() const = 0;

  // Makes the calling thread the one that uses the device.
  virtual void UseOnThisThread() = 0;

  // Zeroed memory of the device, aligned for every kernel. Throws std::runtime_error, with the
  // sizes, when the budget or the device has not enough.
  void* Allocate(size_t bytes);
  void Free(void* data) noexcept;
  MemoryBudget& budget() { return budget_; }

  // Zeroed host memory that kernels can write too, and from which CopyIn() does not wait.
  virtual void* AllocateShared(size_t bytes) = 0;
  virtual void FreeShared(void* data) noexcept = 0;

  // `host` stays untouched until the device has come so far, unless it is ordinary memory: then the
  // call returns when it may change.
  virtual void CopyIn(const void* host, void* device, size_t bytes) = 0;
  // Waits for everything given before, then copies.
  virtual void CopyOut(const void* device, void* host, size_t bytes) = 0;
  // Waits for everything given before. Throws std::runtime_error if any of it failed.
  virtual void Wait() = 0;
  // Whether everything given before is done, without waiting. Throws as Wait() does.
  virtual bool IsIdle() = 0;

  // Work given between the two is not done but recorded; Replay() does it, with one call and every
  // time from the same addresses. A new recording replaces the one before.
  virtual void BeginRecording() = 0;
  virtual void EndRecording() = 0;
  virtual void Replay() = 0;

 protected:
  // As Allocate(), but null when the device has not enough.
  virtual void* AllocateOnDevice(size_t bytes) = 0;
  virtual void FreeOnDevice(void* data) noexcept = 0;
  virtual DeviceMemory Memory() const = 0;

 private:
  MemoryBudget budget_;
  std::map<const void*, size_t> allocated_;  // bytes by address
};

// The device that TrainingSettings::device names; null for "cpu". Throws std::runtime_error with
// the reason if this build or this machine has none.
Device* FindDevice(const std::string& name);

// Adds a device under a name of its own: tests emulate one.
void RegisterDevice(const std::string& name, Device& device);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_DEVICE_H_
