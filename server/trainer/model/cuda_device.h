// What device.cc, matrix_product.cc and cuda_device.cu know of each other.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_CUDA_DEVICE_H_
#define NORMLAB_SERVER_TRAINER_MODEL_CUDA_DEVICE_H_

#include "server/trainer/model/device.h"

namespace normlab::trainer {

// The GPU. Only in builds with CUDA. Throws std::runtime_error if there is none to be used.
Device& CudaDevice();

// Makes LibTorch give the calling thread's work on the first GPU to this cudaStream_t, in full fp32
// (no TF32). In matrix_product.cc.
void UseStreamForProducts(void* cuda_stream);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_CUDA_DEVICE_H_
