// y_t = A_t y_{t-1} + b_t along time, for b (..., T, K, N) and matrices A (..., T, K * K, N), flattened row by row.
#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
COMMODITY_SIMD void recurrence_block(const scalar_t* a, const scalar_t* b, const scalar_t* previous, scalar_t* y,
                                     const Panels& panels, int64_t states, int64_t width) {
  const int64_t assets = panels.assets;
  for (int64_t t = 0; t < panels.steps; ++t) {
    for (int64_t i = 0; i < states; ++i, a += states * assets, b += assets, y += assets) {
      std::copy_n(b, width, y);
      const scalar_t* state = previous;
      for (int64_t j = 0; j < states; ++j, state += assets) {
        COMMODITY_IVDEP
        for (int64_t n = 0; n < width; ++n) y[n] += a[j * assets + n] * state[n];
      }
    }
    previous = y - states * assets;
  }
}

Tensor matrix_recurrence(const Tensor& a_, const Tensor& b_, const std::optional<Tensor>& initial_) {
  STD_TORCH_CHECK(
      a_.scalar_type() == b_.scalar_type() && (!initial_ || initial_->scalar_type() == b_.scalar_type()) &&
          a_.numel() == b_.numel() * b_.size(-2) && (!initial_ || initial_->numel() * b_.size(-3) == b_.numel()),
      "matrix_recurrence: A must be (..., T, K * K, N) and initial (..., K, N) for b (..., T, K, N), and of "
      "its dtype");
  const Tensor a = contiguous(a_), b = contiguous(b_);
  Tensor y = new_empty(b, b.sizes());
  const int64_t states = b.size(-2);
  Panels panels(b);
  panels.steps = b.size(-3);
  panels.batch = panels.steps ? panels.batch / panels.steps : 0;
  const Tensor initial = initial_ ? contiguous(*initial_) : new_zeros(b, {panels.batch * states * panels.assets});
  dispatch("matrix_recurrence", b, [&]<typename scalar_t>() {
    const scalar_t* a_data = a.const_data_ptr<scalar_t>();
    const scalar_t* b_data = b.const_data_ptr<scalar_t>();
    const scalar_t* initial_data = initial.const_data_ptr<scalar_t>();
    scalar_t* y_data = y.mutable_data_ptr<scalar_t>();
    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
      const int64_t offset = panel * panels.size() * states;
      recurrence_block(a_data + offset * states + first, b_data + offset + first,
                       initial_data + panel * states * panels.assets + first, y_data + offset + first, panels, states,
                       last - first);
    });
  });
  return y;
}

}  // namespace

COMMODITY_OPERATOR(matrix_recurrence, "(Tensor a, Tensor b, Tensor? initial=None) -> Tensor")
