// How far a correlation structure moved in `lag` rows, and a count of the regimes, both (..., T): of matrices
// (..., T, N, N) what is off the diagonal, of pairs (..., T, 1, P) all.
#include "device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Shift {
  static constexpr int kSums = 2;  // of changes, and how many
  const scalar_t* correlation;
  scalar_t* shift;
  int64_t steps, size, columns, lag;
  bool packed;

  COMMODITY_INLINE void add(int64_t row, int64_t k, double* sums) const {
    if (row % steps < lag || (!packed && k / columns == k % columns)) return;
    const double now = read(correlation + row * size + k), before = read(correlation + (row - lag) * size + k);
    const double change = now < before ? before - now : now - before;
    if (change - change != 0) return;  // not finite
    sums[0] += change;
    sums[1] += 1;
  }
  COMMODITY_INLINE void finish(int64_t row, const double* sums) const {
    shift[row] = static_cast<scalar_t>(sums[1] > 0 ? sums[0] / sums[1] : NAN);
  }
};

template <typename scalar_t>
struct Count {
  const scalar_t* shift;
  int64_t* regime;
  int64_t steps, lag;
  scalar_t threshold;

  COMMODITY_INLINE void operator()(int64_t panel) const {
    int64_t number = 0, since = lag;
#pragma unroll 8
    for (int64_t t = 0; t < steps; ++t, ++since) {
      if (read(shift + panel * steps + t) > threshold && since >= lag) ++number, since = 0;
      regime[panel * steps + t] = number;
    }
  }
};

std::tuple<Tensor, Tensor> correlation_regime(const Tensor& correlation_, double threshold, int64_t lag, bool packed) {
  STD_TORCH_CHECK(correlation_.dim() >= 3 && lag >= 1, "correlation_regime: correlation (..., T, N, N), lag >= 1");
  const Tensor correlation = contiguous(correlation_);
  const std::vector<int64_t> shape(correlation.sizes().begin(), correlation.sizes().end() - 2);
  Tensor shift = new_empty(correlation, shape);
  Tensor regime = new_empty(correlation, shape, torch::headeronly::ScalarType::Long);
  const int64_t steps = shape.back(), columns = correlation.size(-1), size = correlation.size(-2) * columns;
  const int64_t rows = shift.numel();
  dispatch("correlation_regime", correlation, [&]<typename scalar_t>() {
    scalar_t* to = shift.mutable_data_ptr<scalar_t>();
    const scalar_t* from = correlation.const_data_ptr<scalar_t>();
    launch_rows(shift, rows, size, Shift<scalar_t>{from, to, steps, size, columns, lag, packed});
    launch(shift, rows ? rows / steps : 0,
           Count<scalar_t>{to, regime.mutable_data_ptr<int64_t>(), steps, lag, static_cast<scalar_t>(threshold)});
  });
  return {shift, regime};
}

}  // namespace

COMMODITY_CUDA(correlation_regime)
