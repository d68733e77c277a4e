#include "server/trainer/model/matrix_product.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "server/trainer/model/cuda_device.h"

namespace normlab::trainer {
namespace {

// Product of the two smaller sizes from which LibTorch is faster; see the header for the
// measurement.
constexpr int64_t kLarge = 512 * 512;

bool IsForTorch(const Matrix& a, const Matrix& b, Products products) {
  if (products != Products::kOwnKernelIfSmall) return products == Products::kLibraryOnGpu;
  const int64_t largest = std::max({a.rows, a.columns, b.columns});
  return a.rows * a.columns * b.columns / largest > kLarge;
}

// A tensor over memory that somebody else owns; torch's signature lacks a const form.
at::Tensor View(const Matrix& matrix, Products products) {
  float* data = const_cast<float*>(matrix.data);
  const bool on_gpu = products == Products::kLibraryOnGpu;
  const auto options = at::TensorOptions().device(on_gpu ? at::Device(at::kCUDA, 0) : at::kCPU);
  if (matrix.transposed) return at::from_blob(data, {matrix.columns, matrix.rows}, options).t();
  return at::from_blob(data, {matrix.rows, matrix.columns}, options);
}

}  // namespace

struct MatrixProduct::Tensors {
  at::Tensor a;
  at::Tensor b;
  at::Tensor out;
};

MatrixProduct::MatrixProduct(const Matrix& a, const Matrix& b, ProductStart start, float* out,
                             const Kernels& kernels)
    : a_(a), b_(b), start_(start), out_(out), kernels_(kernels) {
  const Products products = kernels.products;
  if (!IsForTorch(a, b, products)) return;
  tensors_.reset(
      new Tensors{View(a, products), View(b, products), View({out, a.rows, b.columns}, products)});
}

MatrixProduct::MatrixProduct(MatrixProduct&&) noexcept = default;
MatrixProduct::~MatrixProduct() = default;

void MatrixProduct::Run() {
  if (tensors_ == nullptr) return RunKernel();
  Tensors& t = *tensors_;
  if (!start_.accumulate && start_.bias == nullptr) {
    at::mm_out(t.out, t.a, t.b);
    return;
  }
  if (!start_.accumulate) kernels_.fill_rows(start_.bias, a_.rows, b_.columns, out_);
  at::addmm_out(t.out, t.out, t.a, t.b);
}

void MatrixProduct::RunKernel() {
  // A transposed matrix is read with its strides exchanged.
  const int64_t a_row = a_.transposed ? 1 : a_.columns;
  const int64_t a_column = a_.transposed ? a_.rows : 1;
  const int64_t b_row = b_.transposed ? 1 : b_.columns;
  const int64_t b_column = b_.transposed ? b_.rows : 1;
  kernels_.matrix_multiply(a_.data, a_row, a_column, b_.data, b_row, b_column, a_.rows, b_.columns,
                           a_.columns, start_.bias, start_.accumulate, out_);
}

// Through what torch has for every kind of device: this builds without CUDA's headers. A stream
// that is not torch's own is known to torch by its pointer.
void UseStreamForProducts(void* cuda_stream) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  at::globalContext().setAllowTF32CuBLAS(false);
  const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, 0),
                           reinterpret_cast<c10::StreamId>(cuda_stream));
  c10::impl::VirtualGuardImpl(c10::kCUDA).exchangeStream(stream);
}

}  // namespace normlab::trainer
