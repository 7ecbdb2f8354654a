// Shift of a correlation structure against `lag` rows ago, and the regime number, both (..., T). Input: matrices
// (..., T, N, N), without their diagonal, or pairs (..., T, 1, P) if packed.
#include "device.h"

using namespace commodity;

namespace {

// Mean absolute change of the pairs that are finite in both rows: a warp per row.
template <typename scalar_t>
struct MeanChange {
  static constexpr int kSums = 2;  // sum and number of the changes
  const scalar_t* correlation;
  scalar_t* shift;
  int64_t steps, size, columns, lag;
  bool packed;

  COMMODITY_INLINE void add(int64_t row, int64_t k, double* sums) const {
    if (row % steps < lag || (!packed && k / columns == k % columns)) return;
    const double current = read(correlation + row * size + k), previous = read(correlation + (row - lag) * size + k);
    const double change = current < previous ? previous - current : current - previous;
    if (change - change != 0) return;  // not finite
    sums[0] += change;
    sums[1] += 1;
  }
  COMMODITY_INLINE void finish(int64_t row, const double* sums) const {
    shift[row] = static_cast<scalar_t>(sums[1] > 0 ? sums[0] / sums[1] : NAN);
  }
};

template <typename scalar_t>
struct NumberRegimes {
  const scalar_t* shift;
  int64_t* regime;
  int64_t steps, lag;
  scalar_t threshold;

  COMMODITY_INLINE void operator()(int64_t panel) const {
    int64_t number = 0, age = lag;
#pragma unroll 8
    for (int64_t t = 0; t < steps; ++t, ++age) {
      if (read(shift + panel * steps + t) > threshold && age >= lag) ++number, age = 0;
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
    scalar_t* output = shift.mutable_data_ptr<scalar_t>();
    const scalar_t* input = correlation.const_data_ptr<scalar_t>();
    launch_rows(shift, rows, size, MeanChange<scalar_t>{input, output, steps, size, columns, lag, packed});
    launch(shift, rows ? rows / steps : 0,
           NumberRegimes<scalar_t>{output, regime.mutable_data_ptr<int64_t>(), steps, lag,
                                   static_cast<scalar_t>(threshold)});
  });
  return {shift, regime};
}

}  // namespace

COMMODITY_CUDA(correlation_regime)
