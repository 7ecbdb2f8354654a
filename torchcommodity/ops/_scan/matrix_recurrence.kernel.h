// y_t = A_t y_{t-1} + b_t along time, for b (..., T, K, N) and matrices A (..., T, K * K, N), flattened row by row.
//
// A GPU, too, goes row by row: a scan would cost K times the arithmetic, to compose K x K matrices, and would round
// differently.
#include "lanes.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Recurrence {
  const scalar_t *a, *b, *initial_data;
  scalar_t* y;
  int64_t steps, states, assets;

  // The state is the address of y_{t-1}.
  template <typename Lanes>
  COMMODITY_INLINE const scalar_t* initial(const Lanes&, int64_t panel, int64_t n) const {
    return initial_data + panel * states * assets + n;
  }

  template <typename Lanes>
  COMMODITY_INLINE void advance(const Lanes& lanes, int64_t panel, int64_t t, int64_t n,
                                const scalar_t*& previous) const {
    const int64_t row = (panel * steps + t) * states * assets;
    const scalar_t* factor = a + row * states + n;
#pragma unroll 4
    for (int64_t i = 0, at = row + n; i < states; ++i, at += assets) {
      auto sum = lanes.load(b + at);
      for (int64_t j = 0; j < states; ++j, factor += assets)
        sum = lanes.multiply_add(lanes.load(factor), lanes.reload(previous + j * assets), sum);
      lanes.store(sum, y + at);
    }
    previous = y + row + n;
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
    advance_columns<Number<scalar_t>>(y, batch, steps, assets,
                                      Recurrence<scalar_t>{a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(),
                                                           initial.const_data_ptr<scalar_t>(),
                                                           y.mutable_data_ptr<scalar_t>(), steps, states, assets});
  });
  return y;
}

}  // namespace

COMMODITY_KERNEL(matrix_recurrence, "(Tensor a, Tensor b, Tensor? initial=None) -> Tensor")
