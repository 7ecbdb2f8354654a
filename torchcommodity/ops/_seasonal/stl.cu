// STL of x (..., T, N) in double: the steps of stl.h, each a launch over fits or rows (see loess_device.h).
#include "stl_device.h"

using namespace commodity;

namespace {

// Intermediate results, each (B, T, N), and of each column the mean, which is subtracted from x, and what is missing.
struct Planes {
  double *y, *present, *weights, *trend, *seasonal, *detrended, *deseasonalized, *level, *missing;
  int64_t steps, assets;
  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
};

template <typename scalar_t>
struct Center {
  static constexpr int64_t kRows = kRunRows;
  FiniteValues<scalar_t> x;
  ColumnSums sums;
  Planes to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const Sums<double, 2> total = sums.total(panel, n);
    const double count = total.term[1], level = total.term[0] / count;  // NaN for an empty series
    to.level[panel * x.assets + n] = level;
    to.missing[panel * x.assets + n] = count == static_cast<double>(x.steps) ? kNothing : kSomeRows;
    for (int64_t t = first; t < first + kRows && t < x.steps; ++t) {
      const double value = x(panel, t, n);
      const int64_t i = x.at(panel, t, n);
      to.y[i] = to.detrended[i] = value == value ? value - level : 0;
      to.present[i] = to.weights[i] = value == value;
    }
  }
};

// seasonal = cycles - low pass; the cycles are extended by one period at both ends.
struct StoreSeasonal {
  Planes planes;
  const double* cycles;
  int64_t period;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t, int64_t t, int64_t n, double low) const {
    const int64_t i = planes.at(panel, t, n);
    const double seasonal = read(cycles + (panel * (planes.steps + 2 * period) + t + period) * planes.assets + n) - low;
    planes.seasonal[i] = seasonal;
    planes.deseasonalized[i] = planes.y[i] - seasonal;
  }
};

struct StoreTrend {
  Planes planes;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t, int64_t t, int64_t n, double trend) const {
    const int64_t i = planes.at(panel, t, n);
    planes.trend[i] = trend;
    planes.detrended[i] = planes.y[i] - trend;
  }
};

// |residual| column by column; NaN for missing rows.
struct ResidualSizes {
  Planes planes;
  double* to;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t i = planes.at(panel, t, n);
    const double size = std::abs(planes.y[i] - planes.trend[i] - planes.seasonal[i]);
    to[(panel * planes.assets + n) * planes.steps + t] = planes.present[i] != 0 ? size : NAN;
  }
};

// The two middle values of each column, which are equal where their number is odd, digit by digit from the highest one:
// non-negative doubles are ordered as their bit patterns. Row 2 c + j is value j of column c.
struct SelectDigit {
  static constexpr int kBits = 4, kSums = 1 << kBits;
  const double* sizes;
  ColumnSums sums;
  uint64_t* selected;  // the digits above this one
  double* ranks;       // among the values with these digits
  int64_t steps, assets;
  int shift;

  COMMODITY_INLINE bool is_first() const { return shift + kBits == 64; }
  COMMODITY_INLINE void add(int64_t row, int64_t t, double* counts) const {
    const double size = read(sizes + row / 2 * steps + t);
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    const bool counted = size == size && (is_first() || bits >> (shift + kBits) == selected[row]);
    const int digit = static_cast<int>(bits >> shift) & (kSums - 1);
#pragma unroll
    for (int d = 0; d < kSums; ++d) counts[d] += counted && d == digit ? 1 : 0;
  }
  COMMODITY_INLINE void finish(int64_t row, const double* counts) const {
    double rank = is_first() ? first_rank(row) : ranks[row];
    uint64_t digit = 0;
    bool passed = true;
#pragma unroll
    for (int d = 0; d < kSums - 1; ++d) {
      passed = passed && rank >= counts[d];
      rank -= passed ? counts[d] : 0, digit += passed;
    }
    selected[row] = (is_first() ? 0 : selected[row] << kBits) + digit, ranks[row] = rank;
  }
  COMMODITY_INLINE double first_rank(int64_t row) const {
    const int64_t count = static_cast<int64_t>(sums.total(row / 2 / assets, row / 2 % assets).term[1]);
    return static_cast<double>(row % 2 ? count / 2 : (count - 1) / 2);
  }
};

// Bisquare weights (1 - (r / 6 median r)^2)^2, r = |residual|.
struct RobustnessWeights {
  Planes planes;
  const double *sizes, *middle;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t column = panel * planes.assets + n;
    const double size = read(sizes + column * planes.steps + t);
    const double scale = 3 * (read(middle + 2 * column) + read(middle + 2 * column + 1));
    const double u = scale > 0 ? size / scale : 0, complement = 1 - u * u;
    planes.weights[planes.at(panel, t, n)] = size != size ? 0
                                             : u <= 0.001 ? 1
                                             : u <= 0.999 ? complement * complement
                                                          : 0;
    if (t == 0) planes.missing[column] = kSomeRows;
  }
};

void update_robustness_weights(const Tensor& like, const Panels& panels, const ColumnSums& sums, const Planes& planes) {
  const int64_t columns = panels.batch * panels.assets;
  const Grid rows(panels.batch, panels.assets, panels.steps);
  const Tensor memory = scratch(like, columns * (panels.steps + 4));
  double *middle = data_ptr<double>(memory), *ranks = middle + 2 * columns, *sizes = ranks + 2 * columns;
  launch_grid(like, rows, ResidualSizes{planes, sizes});
  for (int shift = 64 - SelectDigit::kBits; shift >= 0; shift -= SelectDigit::kBits)
    launch_rows(
        like, 2 * columns, panels.steps,
        SelectDigit{sizes, sums, reinterpret_cast<uint64_t*>(middle), ranks, panels.steps, panels.assets, shift});
  launch_grid(like, rows, RobustnessWeights{planes, sizes, middle});
}

template <typename scalar_t>
struct Write {
  Planes planes;
  scalar_t* to[4];

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t t) const {
    const int64_t i = planes.at(panel, t, n);
    const double level = planes.level[panel * planes.assets + n], nan_if_empty = 0 * level;
    to[0][i] = static_cast<scalar_t>(planes.trend[i] + level);
    to[1][i] = static_cast<scalar_t>(planes.seasonal[i] + nan_if_empty);
    to[2][i] = static_cast<scalar_t>(planes.present[i] != 0 ? planes.y[i] - planes.trend[i] - planes.seasonal[i] : NAN);
    to[3][i] = static_cast<scalar_t>(planes.weights[i]);
  }
};

using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Parts stl(const Tensor& x_, int64_t period, std::vector<int64_t> lengths, std::vector<int64_t> degrees,
          std::vector<int64_t> jumps, int64_t inner, int64_t outer) {
  STD_TORCH_CHECK(period >= 2 && inner >= 1 && x_.size(-2) >= 2 * period, "stl: needs T >= 2 period and a pass");
  const Tensor x = contiguous(x_);
  const Panels panels(x);
  const int64_t batch = panels.batch, steps = panels.steps, assets = panels.assets, extended = steps + 2 * period;
  const auto empty = [&] { return new_empty(x, x.sizes()); };
  Tensor parts[4] = {empty(), empty(), empty(), empty()};
  std::vector<Tensor> memory;
  const auto allocate = [&](int64_t doubles) {
    memory.push_back(scratch(x, doubles));
    return data_ptr<double>(memory.back());
  };
  const auto plane = [&](int64_t rows) { return allocate(batch * rows * assets); };
  const Planes planes{plane(steps), plane(steps), plane(steps), plane(steps), plane(steps), plane(steps),
                      plane(steps), plane(1),     plane(1),     steps,        assets};
  double *cycles = plane(extended), *average = plane(extended), *other_average = plane(extended);
  const ColumnSums sums(plane(2 * ColumnSums::chunks_of(steps)), panels);
  const Smoothers smoothers(x, allocate, panels, period, lengths, degrees, jumps,
                            {planes.weights, planes.present, planes.missing});
  const auto inner_pass = [&] {
    for (const Loess& phases : smoothers.phases)
      phases.smooth(x, planes.detrended, StoreRows{{extended, period, assets, phases.fits.rows.first_phase}, cycles});
    moving_average(x, batch, assets, cycles, extended, period, average);
    moving_average(x, batch, assets, average, extended - period + 1, period, other_average);
    moving_average(x, batch, assets, other_average, steps + 2, 3, average);
    smoothers.low_pass->smooth(x, average, StoreSeasonal{planes, cycles, period});
    smoothers.trend->smooth(x, planes.deseasonalized, StoreTrend{planes});
  };
  dispatch("stl", x, [&]<typename scalar_t>() {
    const FiniteValues<scalar_t> values = finite_values<scalar_t>(x, panels);
    sum_columns(x, panels, FiniteSum<scalar_t>{values}, sums);
    launch_windows(x, panels, Center<scalar_t>{values, sums, planes});
    for (int64_t outer_pass = 0; outer_pass <= outer; ++outer_pass) {
      if (outer_pass) update_robustness_weights(x, panels, sums, planes);
      smoothers.update_factors(x);
      for (int64_t pass = 0; pass < inner; ++pass) inner_pass();
    }
    Write<scalar_t> write{planes, {}};
    for (int i = 0; i < 4; ++i) write.to[i] = parts[i].mutable_data_ptr<scalar_t>();
    launch_grid(x, Grid(batch, assets, steps), write);
  });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

COMMODITY_CUDA(stl)
