#include "server/trainer/model/matrix_product.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

namespace normlab::trainer {
namespace {

// A tensor over memory that somebody else owns; torch's signature lacks a const form.
at::Tensor View(const Matrix& matrix) {
  float* data = const_cast<float*>(matrix.data);
  if (matrix.transposed) return at::from_blob(data, {matrix.columns, matrix.rows}).t();
  return at::from_blob(data, {matrix.rows, matrix.columns});
}

}  // namespace

struct MatrixProduct::Operands {
  at::Tensor a;
  at::Tensor b;
  at::Tensor out;
  bool accumulate;
};

MatrixProduct::MatrixProduct(const Matrix& a, const Matrix& b, float* out, bool accumulate)
    : operands_(new Operands{View(a), View(b), View({out, a.rows, b.columns}), accumulate}) {}

MatrixProduct::MatrixProduct(MatrixProduct&&) noexcept = default;
MatrixProduct::~MatrixProduct() = default;

void MatrixProduct::Run() {
  Operands& o = *operands_;
  if (o.accumulate) {
    at::addmm_out(o.out, o.out, o.a, o.b);
  } else {
    at::mm_out(o.out, o.a, o.b);
  }
}

}  // namespace normlab::trainer
