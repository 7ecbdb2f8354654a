// Rolling mean of the finite values in each window of (..., T, N). windows.h explains the scheme: suffix sums of the
// previous block plus a running total.
#include "lanes.h"

using namespace commodity;

namespace {

// The sum of the finite values so far, and their number. If all values are `complete`, nothing is counted; a value that
// is not finite then makes the sum infinite or NaN.
template <bool complete, typename Vector, int kVectors>
struct Total {
  using Row = Lanes<Vector, kVectors>;
  Row sum, count;

  template <typename scalar_t>
  inline void add(const scalar_t* row) {
    const Row x = Row::read(row);
    for (int v = 0; v < kVectors; ++v) {
      const auto finite = x.value[v] - x.value[v] == 0;
      sum.value[v] += complete ? x.value[v] : finite ? x.value[v] : Vector{};
      if (!complete) count.value[v] += finite ? Vector{} + 1 : Vector{};
    }
  }
};

// The windows that end in a block, for one group of columns. Returns false, with a useless result, if `complete` is
// wrong.
template <bool complete, typename Vector, int kVectors, typename scalar_t>
inline bool rolling_mean_group(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block, int64_t window,
                               double min_periods, double* suffix) {
  using Row = Lanes<Vector, kVectors>;
  Total<complete, Vector, kVectors> previous, current;
  for (int64_t j = window - 1; j >= 0; --j) {
    double* row = suffix + 2 * j * kLanes;
    previous.sum.write(row);
    if (!complete) previous.count.write(row + kLanes);
    if (block.begin > 0) previous.add(x + (block.begin - window + j) * stride);
  }
  if (complete && !previous.sum.finite()) return false;
  for (int64_t j = 0, t = block.begin; t < block.end; ++j, ++t) {
    if (t + kPrefetchRows < block.end) {
      __builtin_prefetch(x + (t + kPrefetchRows) * stride);
      __builtin_prefetch(y + (t + kPrefetchRows) * stride, 1);
    }
    current.add(x + t * stride);
    const double* row = suffix + 2 * j * kLanes;
    Row total = Row::read(row), count;
    if (!complete) count = Row::read(row + kLanes);
    for (int v = 0; v < kVectors; ++v) {
      count.value[v] =
          complete ? Vector{} + double(block.begin ? window : j + 1) : count.value[v] + current.count.value[v];
      const Vector mean = (total.value[v] + current.sum.value[v]) / count.value[v];
      total.value[v] = count.value[v] >= min_periods ? mean : Vector{} + NAN;
    }
    total.write(y + t * stride);
  }
  return !complete || current.sum.finite();
}

template <typename scalar_t>
COMMODITY_SIMD void rolling_mean_block(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block,
                                       int64_t window, double min_periods, double* suffix) {
  for_each_group(block.width, [&]<typename Vector, int kVectors>(int64_t n) {
    if (!rolling_mean_group<true, Vector, kVectors>(x + n, y + n, stride, block, window, min_periods, suffix))
      rolling_mean_group<false, Vector, kVectors>(x + n, y + n, stride, block, window, min_periods, suffix);
  });
}

Tensor rolling_mean(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_mean", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(
                        panels, rows, 2,
                        [&](const WindowBlock& block, double* suffix) {
                          const int64_t offset = block.panel * panels.size() + block.first;
                          rolling_mean_block(input + offset, output + offset, panels.assets, block, rows,
                                             double(min_periods.value_or(window)), suffix);
                        },
                        kLanes);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_mean, "(Tensor x, SymInt window, SymInt? min_periods=None) -> Tensor")
