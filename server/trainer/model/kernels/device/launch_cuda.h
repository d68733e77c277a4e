// How device kernels run on a GPU: NORMLAB_DEVICE, Lanes and the loops that launch.h describes.
// Included only by cuda_device.cu.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_LAUNCH_CUDA_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_LAUNCH_CUDA_H_

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#define NORMLAB_DEVICE __device__

namespace normlab::trainer {
namespace {

// Everything is given to one stream, by one thread at a time.
cudaStream_t stream = nullptr;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
}

constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xFFFFFFFFu;
constexpr long kMostBlocks = 1 << 16;  // a grid; loops go on beyond it

unsigned Blocks(long work, long per_block) {
  const long blocks = (work + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

// The threads of a warp that share one row. All of them are always there, so every call is made by
// all or by none.
struct Lanes {
  int lane;
  static constexpr int count = kWarp;

  __device__ float Sum(float x) const {
    for (int other = kWarp / 2; other > 0; other /= 2) x += __shfl_xor_sync(kWholeWarp, x, other);
    return x;
  }
  __device__ float Max(float x) const {
    for (int other = kWarp / 2; other > 0; other /= 2) {
      x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, other));
    }
    return x;
  }
  // What any lane wrote before is seen by all after.
  __device__ void Meet() const { __syncwarp(); }
};

constexpr int kElementThreads = 256;

template <typename Body>
__global__ void __launch_bounds__(kElementThreads) RunElements(long count, Body body) {
  const long step = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

template <typename Body>
void ForEach(long count, const Body& body) {
  if (count <= 0) return;
  RunElements<<<Blocks(count, kElementThreads), kElementThreads, 0, stream>>>(count, body);
  Check(cudaGetLastError(), "a kernel over elements");
}

constexpr int kRowsPerBlock = 4;

template <typename Body>
__global__ void __launch_bounds__(kRowsPerBlock* kWarp) RunRows(long rows, Body body) {
  const Lanes lanes = {static_cast<int>(threadIdx.x)};
  const long step = static_cast<long>(gridDim.x) * kRowsPerBlock;
  // threadIdx.y is the same in a whole warp: its threads leave the loop together.
  for (long r = static_cast<long>(blockIdx.x) * kRowsPerBlock + threadIdx.y; r < rows; r += step) {
    body(lanes, r);
  }
}

template <typename Body>
void ForEachRow(long rows, const Body& body) {
  if (rows <= 0) return;
  RunRows<<<Blocks(rows, kRowsPerBlock), dim3(kWarp, kRowsPerBlock), 0, stream>>>(rows, body);
  Check(cudaGetLastError(), "a kernel over rows");
}

constexpr int kColumnTile = 32;

// A block sums 32 neighbouring columns, 32 threads each; then the 32 sums of a column in a tree.
template <typename Term>
__global__ void __launch_bounds__(kColumnTile* kColumnTile)
    RunColumnSums(long rows, long width, Term term, float* sums) {
  __shared__ float partial[kColumnTile][kColumnTile + 1];
  const long c = static_cast<long>(blockIdx.x) * kColumnTile + threadIdx.x;
  float sum = 0;
  if (c < width) {
    for (long r = threadIdx.y; r < rows; r += kColumnTile) sum += term(r, c);
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int half = kColumnTile / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) {
      partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && c < width) sums[c] += partial[0][threadIdx.x];
}

template <typename Term>
void AddColumnSumsOf(long rows, long width, const Term& term, float* sums) {
  if (width <= 0) return;
  const auto blocks = static_cast<unsigned>((width + kColumnTile - 1) / kColumnTile);
  RunColumnSums<<<blocks, dim3(kColumnTile, kColumnTile), 0, stream>>>(rows, width, term, sums);
  Check(cudaGetLastError(), "a kernel of column sums");
}

constexpr int kSumThreads = 256;
constexpr int kSumBlocks = 256;

// Between the two kernels of a total; the next total begins after this one has ended.
__device__ double partial_totals[kSumBlocks];

__device__ inline double BlockTotal(double sum) {
  __shared__ double partial[kSumThreads];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  return partial[0];
}

template <typename Term>
__global__ void __launch_bounds__(kSumThreads) RunPartialTotals(long count, Term term) {
  double sum = 0;
  const long step = static_cast<long>(gridDim.x) * kSumThreads;
  for (long i = static_cast<long>(blockIdx.x) * kSumThreads + threadIdx.x; i < count; i += step) {
    sum += term(i);
  }
  const double total = BlockTotal(sum);
  if (threadIdx.x == 0) partial_totals[blockIdx.x] = total;
}

template <typename Store>
__global__ void __launch_bounds__(kSumThreads) RunTotal(Store store) {
  const double total = BlockTotal(threadIdx.x < kSumBlocks ? partial_totals[threadIdx.x] : 0.0);
  if (threadIdx.x == 0) store(total);
}

template <typename Term, typename Store>
void TotalOf(long count, const Term& term, const Store& store) {
  static_assert(kSumBlocks <= kSumThreads);
  RunPartialTotals<<<kSumBlocks, kSumThreads, 0, stream>>>(count, term);
  Check(cudaGetLastError(), "the first kernel of a total");
  RunTotal<<<1, kSumThreads, 0, stream>>>(store);
  Check(cudaGetLastError(), "the second kernel of a total");
}

template <typename Body>
__global__ void RunOnce(Body body) {
  body();
}

template <typename Body>
void Once(const Body& body) {
  RunOnce<<<1, 1, 0, stream>>>(body);
  Check(cudaGetLastError(), "a kernel of one thread");
}

__device__ inline void PublishToHost() { __threadfence_system(); }

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_DEVICE_LAUNCH_CUDA_H_
