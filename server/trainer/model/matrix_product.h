// Matrix products by LibTorch, set up once and run every step.
//
// Plain C++ on the outside: components need no torch header, which would take half a minute each to
// compile.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_

#include <cstdint>
#include <memory>

namespace normlab::trainer {

// A row-major matrix of floats somewhere in memory, or its transpose.
struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  bool transposed = false;  // then data holds [columns, rows]

  Matrix Transposed() const { return {data, columns, rows, !transposed}; }
};

// out = a b, or out += a b.
class MatrixProduct {
 public:
  MatrixProduct(const Matrix& a, const Matrix& b, float* out, bool accumulate);
  MatrixProduct(MatrixProduct&&) noexcept;
  ~MatrixProduct();

  void Run();

 private:
  struct Operands;
  std::unique_ptr<Operands> operands_;
};

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_MATRIX_PRODUCT_H_
