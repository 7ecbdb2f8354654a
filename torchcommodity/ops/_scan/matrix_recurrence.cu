// y_t = A_t y_{t-1} + b_t along time, for b (..., T, K, N) and matrices A (..., T, K * K, N), flattened row by row.
//
// An item takes one asset through all of time. Chunks of time as in device.h would cost K times the arithmetic, to
// compose K x K matrices, and would round differently from the CPU.
#include "device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Recurrence {
  const scalar_t *a, *b, *initial;
  scalar_t* y;
  int64_t steps, states, assets;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    const scalar_t* previous = initial + panel * states * assets + n;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t row = (panel * steps + t) * states * assets + n;
#pragma unroll 4
      for (int64_t i = 0; i < states; ++i) {
        double sum = read(b + row + i * assets);
        const int64_t factors = (panel * steps + t) * states * states * assets + i * states * assets + n;
        for (int64_t j = 0; j < states; ++j) sum += double(read(a + factors + j * assets)) * previous[j * assets];
        y[row + i * assets] = static_cast<scalar_t>(sum);
      }
      previous = y + row;
    }
  }
};

Tensor matrix_recurrence(const Tensor& a_, const Tensor& b_, const std::optional<Tensor>& initial_) {
  STD_TORCH_CHECK(
      a_.scalar_type() == b_.scalar_type() && (!initial_ || initial_->scalar_type() == b_.scalar_type()) &&
          a_.numel() == b_.numel() * b_.size(-2) && (!initial_ || initial_->numel() * b_.size(-3) == b_.numel()),
      "matrix_recurrence: A must be (..., T, K * K, N) and initial (..., K, N) for b (..., T, K, N), and of "
      "its dtype");
  const Tensor a = contiguous(a_), b = contiguous(b_);
  Tensor y = new_empty(b, b.sizes());
  const int64_t steps = b.size(-3), states = b.size(-2), assets = b.size(-1);
  const int64_t batch = b.numel() ? b.numel() / (steps * states * assets) : 0;
  const Tensor initial = initial_ ? contiguous(*initial_) : new_zeros(b, {batch * states * assets});
  dispatch("matrix_recurrence", b, [&]<typename scalar_t>() {
    const scalar_t* initial_data = initial.const_data_ptr<scalar_t>();
    launch_grid(y, Grid(batch, assets, 1),
                Recurrence<scalar_t>{a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(), initial_data,
                                     y.mutable_data_ptr<scalar_t>(), steps, states, assets});
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(matrix_recurrence)
