// Matrix products, set up once and run every step.
//
// Small ones are done by our own kernel, large ones by LibTorch. On one Zen 4 core the article's
// products (768 x 64 x 64 ... 256) run at 110 GFLOP/s in the kernel and at 92 in LibTorch 2.13;
// from about 512 x 512 on LibTorch is ahead. Plain C++ on the outside: components need no torch
// header, which would take half a minute each to compile.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "server/trainer/model/kernels/kernels.h"

namespace normlab::trainer {

// A row-major matrix of floats somewhere in memory, or its transpose.
struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  bool transposed = false;  // then data holds [columns, rows]

  Matrix Transposed() const { return {data, columns, rows, !transposed}; }
};

// What the result starts from.
struct ProductStart {
  bool accumulate = false;      // what is there
  const float* bias = nullptr;  // else this row in every row, or zero
};

// out = start + a b.
class MatrixProduct {
 public:
  MatrixProduct(const Matrix& a, const Matrix& b, ProductStart start, float* out,
                const Kernels& kernels);
  MatrixProduct(MatrixProduct&&) noexcept;
  ~MatrixProduct();

  void Run();

  bool uses_torch() const { return tensors_ != nullptr; }

 private:
  struct Tensors;

  void RunKernel();

  const Matrix a_;
  const Matrix b_;
  const ProductStart start_;
  float* const out_;
  const Kernels& kernels_;
  std::unique_ptr<Tensors> tensors_;  // for large products
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_
