// The NVIDIA GPU: memory, one stream, and recorded steps. Everything that only a GPU understands is
// here and in kernels/device/launch_cuda.h; no torch header is.
#include <math.h>
#include <string.h>

#include <stdexcept>
#include <string>

#include "server/trainer/model/cuda_device.h"
#include "server/trainer/model/device.h"
#include "server/trainer/model/kernels/device/launch_cuda.h"

#define NORMLAB_DEVICE_NAME "cuda"
#define NORMLAB_DEVICE_PRODUCTS Products::kLibraryOnGpu
#include "server/trainer/model/kernels/device/table.h"

namespace normlab::trainer {
namespace {

class CudaDeviceImpl final : public Device {
 public:
  CudaDeviceImpl() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
      throw std::runtime_error(std::string("device \"cuda\": no GPU to be used here: ") +
                               (status != cudaSuccess ? cudaGetErrorString(status) : "none found"));
    }
    Check(cudaSetDevice(0), "choosing the GPU");  // CUDA_VISIBLE_DEVICES says which is number 0
    Check(cudaGetDeviceProperties(&properties_, 0), "asking what the GPU is");
    // A stream of its own: the default one can be neither recorded nor waited for alone.
    Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  }

  std::string Description() const override { return properties_.name; }
  const Kernels& kernels() const override { return kDeviceKernels; }
  const StepKernels& step_kernels() const override { return kDeviceStepKernels; }

  void UseOnThisThread() override {
    Check(cudaSetDevice(0), "choosing the GPU");
    UseStreamForProducts(stream);
  }

  void* AllocateShared(size_t bytes) override {
    void* data = nullptr;
    Check(cudaHostAlloc(&data, bytes > 0 ? bytes : 1, cudaHostAllocMapped), "pinning host memory");
    memset(data, 0, bytes);
    return data;  // with unified addresses the GPU knows it by the same one
  }

  void FreeShared(void* data) noexcept override { cudaFreeHost(data); }

  void CopyIn(const void* host, void* device, size_t bytes) override {
    Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "copying in");
  }

  void CopyOut(const void* device, void* host, size_t bytes) override {
    Check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "copying out");
    Wait();
  }

  void Wait() override { Check(cudaStreamSynchronize(stream), "running a step"); }

  bool IsIdle() override {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaErrorNotReady) return false;
    Check(status, "running a step");
    return true;
  }

  void BeginRecording() override {
    // Thread-local: what torch's other threads do is not our recording's business.
    Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  }

  void EndRecording() override {
    cudaGraph_t graph = nullptr;
    Check(cudaStreamEndCapture(stream, &graph), "ending the recording of a step");
    if (recorded_ != nullptr) Check(cudaGraphExecDestroy(recorded_), "dropping a recording");
    recorded_ = nullptr;
    Check(cudaGraphInstantiate(&recorded_, graph, 0), "making a recording ready");
    Check(cudaGraphDestroy(graph), "dropping a graph");
  }

  void Replay() override { Check(cudaGraphLaunch(recorded_, stream), "replaying a step"); }

 protected:
  void* AllocateOnDevice(size_t bytes) override {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // forget it
      return nullptr;
    }
    Check(status, "allocating memory");
    Check(cudaMemsetAsync(data, 0, bytes, stream), "clearing memory");
    return data;
  }

  void FreeOnDevice(void* data) noexcept override { cudaFree(data); }  // waits for the GPU by itself

  DeviceMemory Memory() const override {
    DeviceMemory memory;
    Check(cudaMemGetInfo(&memory.free, &memory.total), "asking for free memory");
    return memory;
  }

 private:
  cudaDeviceProp properties_;
  cudaGraphExec_t recorded_ = nullptr;
};

}  // namespace

Device& CudaDevice() {
  // Never destroyed: at the end of the process the driver may be gone before it.
  static CudaDeviceImpl& device = *new CudaDeviceImpl();
  return device;
}

}  // namespace normlab::trainer
