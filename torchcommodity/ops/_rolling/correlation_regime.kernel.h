// Shift of a correlation structure against `lag` rows ago, and the regime number, both (..., T). Input: matrices
// (..., T, N, N), whose diagonal is ignored, or pairs (..., T, 1, P) if packed.
#include "kernel.h"

using namespace commodity;

namespace {

// Absolute changes of the pairs against `lag` rows ago, of which those that are finite count.
template <typename scalar_t>
struct Changes {
  const scalar_t* correlation;
  scalar_t* shift;
  int64_t steps, rows, columns, lag;
  bool packed;

  COMMODITY_INLINE double at(int64_t t, int64_t i, int64_t j) const {
    const int64_t size = rows * columns;
    const scalar_t* now = correlation + t * size + i * columns + j;
    const double change = std::abs(double(read(now)) - read(now - lag * size));
    return packed || i != j ? change : NAN;
  }
};

#if defined(COMMODITY_GPU)

// A warp per row of time.
template <typename scalar_t>
struct MeanChange : Changes<scalar_t> {
  static constexpr int kSums = 2;  // sum and number of the changes

  COMMODITY_INLINE void add(int64_t t, int64_t k, double* sums) const {
    if (t % this->steps < this->lag) return;
    const double change = this->at(t, k / this->columns, k % this->columns);
    if (change - change != 0) return;  // not finite
    sums[0] += change;
    sums[1] += 1;
  }
  COMMODITY_INLINE void finish(int64_t t, const double* sums) const {
    this->shift[t] = static_cast<scalar_t>(sums[0] / sums[1]);
  }
};

template <typename scalar_t>
void average(const Tensor& shift, const Changes<scalar_t>& changes) {
  launch_rows(shift, shift.numel(), changes.rows * changes.columns, MeanChange<scalar_t>{changes});
}

#else

template <typename scalar_t>
void average(const Tensor& shift, const Changes<scalar_t>& changes) {
  const int64_t size = changes.rows * changes.columns, grain = kGrain / std::max<int64_t>(1, size);
  parallel_for(0, shift.numel(), std::max<int64_t>(1, grain), [=](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      double sum = 0;
      int64_t count = 0;
      for (int64_t i = 0; t % changes.steps >= changes.lag && i < changes.rows; ++i)
        for (int64_t j = 0; j < changes.columns; ++j) {
          const double change = changes.at(t, i, j);
          const bool valid = std::isfinite(change);
          sum += valid ? change : 0, count += valid;
        }
      changes.shift[t] = static_cast<scalar_t>(sum / count);
    }
  });
}

#endif

template <typename scalar_t>
struct NumberRegimes {
  const scalar_t* shift;
  int64_t* regime;
  int64_t steps, lag;
  scalar_t threshold;

  COMMODITY_INLINE int64_t memory() const { return 0; }
  int64_t work() const { return steps; }

  COMMODITY_INLINE void operator()(int64_t panel, double*) const {
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
  const int64_t steps = shape.back();
  dispatch("correlation_regime", correlation, [&]<typename scalar_t>() {
    scalar_t* output = shift.mutable_data_ptr<scalar_t>();
    average(shift, Changes<scalar_t>{correlation.const_data_ptr<scalar_t>(), output, steps, correlation.size(-2),
                                     correlation.size(-1), lag, packed});
    for_each_panel(shift, shift.numel() ? shift.numel() / steps : 0,
                   NumberRegimes<scalar_t>{output, regime.mutable_data_ptr<int64_t>(), steps, lag,
                                           static_cast<scalar_t>(threshold)});
  });
  return {shift, regime};
}

}  // namespace

COMMODITY_KERNEL(correlation_regime,
                 "(Tensor correlation, float threshold=0.3, SymInt lag=21, bool packed=False) -> (Tensor, Tensor)")
