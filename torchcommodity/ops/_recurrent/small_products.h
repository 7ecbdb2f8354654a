// Matrix products of a few samples, which take less time than a call of BLAS; others are BLAS's.
#pragma once
#include "units.h"

namespace commodity {
inline namespace COMMODITY_DEVICE {

#if defined(COMMODITY_GPU)

// x W' + b for samples x (..., F).
inline Tensor project(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  return call_aten("aten::linear", x, weight, bias);
}

// out = a b
inline void multiply_few(const Tensor& a, const Tensor& b, const Tensor& out) { multiply(a, b, out); }

#else

constexpr int64_t kFew = 1 << 14;  // multiplications

template <typename scalar_t>
struct Matrix {
  scalar_t* values;
  int64_t rows, columns, row_stride, column_stride;

  template <typename T>
  Matrix(const Tensor& x, T* values)
      : values(values), rows(x.size(0)), columns(x.size(1)), row_stride(x.stride(0)), column_stride(x.stride(1)) {}
  scalar_t* row(int64_t i) const { return values + i * row_stride; }
};

template <typename scalar_t>
COMMODITY_SIMD void project_few(const Matrix<const scalar_t> x, const Matrix<const scalar_t> weight,
                                const scalar_t* bias, scalar_t* y) {
  constexpr int64_t lanes = Simd<scalar_t>::count;
  const int64_t features = x.columns;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t o = 0; o < weight.rows; ++o) {
      const scalar_t *from = x.row(i), *w = weight.row(o);
      Vec<scalar_t> sums{};
      int64_t j = 0;
      for (; j + lanes <= features; j += lanes) {
        Vec<scalar_t> left, right;
        load<scalar_t>(left, from + j), load<scalar_t>(right, w + j);
        sums += left * right;
      }
      scalar_t sum = bias ? bias[o] : scalar_t(0);
      for (; j < features; ++j) sum += from[j] * w[j];
      for (int64_t lane = 0; lane < lanes; ++lane) sum += sums[lane];
      y[i * weight.rows + o] = sum;
    }
}

template <typename scalar_t>
COMMODITY_SIMD void multiply_few(const Matrix<const scalar_t> a, const Matrix<const scalar_t> b,
                                 const Matrix<scalar_t> out) {
  for (int64_t i = 0; i < out.rows; ++i) {
    scalar_t* to = out.row(i);
    std::fill_n(to, out.columns, scalar_t(0));
    for (int64_t k = 0; k < b.rows; ++k) {
      const scalar_t factor = a.values[i * a.row_stride + k * a.column_stride], *from = b.row(k);
      COMMODITY_IVDEP  // the rows do not overlap
      for (int64_t j = 0; j < out.columns; ++j) to[j] += factor * from[j];
    }
  }
}

// x W' + b for contiguous samples x (..., F).
inline Tensor project(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  const int64_t features = x.size(-1), outputs = weight.size(0);
  if (x.numel() * outputs > kFew || features == 0 || weight.stride(1) != 1 || (bias && !bias->is_contiguous()))
    return call_aten("aten::linear", x, weight, bias);
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end());
  sizes.back() = outputs;
  const Tensor y = new_empty(x, sizes), samples = as_matrix(x, x.numel() / features, features, features, 1);
  dispatch("recurrent cell", x, [&]<typename scalar_t>() {
    project_few<scalar_t>({samples, x.const_data_ptr<scalar_t>()}, {weight, weight.const_data_ptr<scalar_t>()},
                          bias ? bias->const_data_ptr<scalar_t>() : nullptr, y.mutable_data_ptr<scalar_t>());
  });
  return y;
}

// out = a b
inline void multiply_few(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (a.numel() * b.size(1) > kFew || b.stride(1) != 1 || out.stride(1) != 1) return multiply(a, b, out);
  dispatch("recurrent cell", out, [&]<typename scalar_t>() {
    multiply_few<scalar_t>({a, a.const_data_ptr<scalar_t>()}, {b, b.const_data_ptr<scalar_t>()},
                           {out, out.mutable_data_ptr<scalar_t>()});
  });
}

#endif

}  // namespace COMMODITY_DEVICE
}  // namespace commodity
