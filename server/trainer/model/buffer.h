// A zeroed array of floats on a cache-line boundary, so that kernels and the matrix library always
// see the same alignment: with another one a library may add in another order. On a device it is
// for that device's kernels only.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_BUFFER_H_
#define NORMLAB_SERVER_TRAINER_MODEL_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "server/trainer/model/device.h"

namespace normlab::trainer {

class Buffer {
 public:
  Buffer() = default;
  // `device` is null for the host's memory, else it outlives the buffer.
  explicit Buffer(int64_t count, Device* device = nullptr) : count_(static_cast<size_t>(count)) {
    const size_t bytes = (count_ * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    if (device != nullptr) {
      data_ = {static_cast<float*>(device->Allocate(bytes)), Free{device}};
      return;
    }
    data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (data_ == nullptr) {
      throw std::runtime_error("out of memory: asked for " + std::to_string(bytes >> 20) + " MiB");
    }
    std::memset(data_.get(), 0, bytes);
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), count_}; }
  std::span<const float> span() const { return {data_.get(), count_}; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    Free() : device(nullptr) {}
    explicit Free(Device* device) : device(device) {}
    void operator()(float* data) const {
      if (device != nullptr) return device->Free(data);
      std::free(data);
    }
    Device* device;
  };
  std::unique_ptr<float, Free> data_;
  size_t count_ = 0;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_BUFFER_H_
