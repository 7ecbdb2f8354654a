// What stl and its transpose have in common on a GPU: the smoothers, moving averages, and sums over columns.
#pragma once
#include "loess_device.h"

namespace commodity {
inline namespace on_gpu {

// Moving averages: to[t] is the mean of the `window` rows of x that end in row t + ahead; rows that x lacks are zero.
struct MovingAverage {
  static constexpr int64_t kRows = kRunRows;
  const double* x;
  double* to;
  int64_t steps, averages, assets, window, ahead;  // steps of x

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto add = [&](Sums<double, 1>& sum, int64_t t, double sign) {
      sum.term[0] += sign * read(x + (panel * steps + t) * assets + n);
    };
    const auto finish = [&](int64_t end, const Sums<double, 1>& sum, const Sums<double, 1>&) {
      to[(panel * averages + end - ahead) * assets + n] = sum.term[0] / static_cast<double>(window);
    };
    const int64_t last = first + kRows < averages ? first + kRows : averages;
    slide_window<Sums<double, 1>>(first + ahead, last + ahead, window, steps, add, finish);
  }
};

inline void moving_average(const Tensor& like, int64_t batch, int64_t assets, const double* x, int64_t steps,
                           int64_t window, double* to) {
  const int64_t averages = steps - window + 1;
  launch_windows(like, Panels(batch, averages, assets),
                 MovingAverage{x, to, steps, averages, assets, window, window - 1});
}
// The gradient of x, of `steps` rows, from that of its averages.
inline void moving_average_transpose(const Tensor& like, int64_t batch, int64_t assets, const double* grad,
                                     int64_t steps, int64_t window, double* to) {
  launch_windows(like, Panels(batch, steps, assets),
                 MovingAverage{grad, to, steps - window + 1, steps, assets, window, 0});
}

// Two sums over each column: those of kRunRows rows are in memory, and every thread that needs a total adds them up.
struct ColumnSums {
  Sums<double, 2>* sums;
  int64_t assets, chunks;

  static int64_t chunks_of(int64_t steps) { return (steps + kRunRows - 1) / kRunRows; }
  ColumnSums(double* memory, const Panels& panels)  // 2 chunks x N numbers for each panel
      : sums(reinterpret_cast<Sums<double, 2>*>(memory)), assets(panels.assets), chunks(chunks_of(panels.steps)) {}
  COMMODITY_INLINE Sums<double, 2>& chunk(int64_t panel, int64_t c, int64_t n) const {
    return sums[(panel * chunks + c) * assets + n];
  }
  COMMODITY_INLINE Sums<double, 2> total(int64_t panel, int64_t n) const {
    Sums<double, 2> total;
#pragma unroll 8
    for (int64_t c = 0; c < chunks; ++c) total = total.combine(chunk(panel, c, n));
    return total;
  }
};

// Adds up terms(panel, t, n, sums).
template <typename Terms>
struct SumColumns {
  static constexpr int64_t kRows = kRunRows;
  Terms terms;
  ColumnSums to;
  int64_t steps;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const int64_t last = first + kRows < steps ? first + kRows : steps;
    Sums<double, 2> sums;
#pragma unroll 8
    for (int64_t t = first; t < last; ++t) terms(panel, t, n, sums);
    to.chunk(panel, first / kRows, n) = sums;
  }
};

template <typename Terms>
void sum_columns(const Tensor& like, const Panels& panels, const Terms& terms, const ColumnSums& to) {
  launch_windows(like, panels, SumColumns<Terms>{terms, to, panels.steps});
}

// The sum and the number of finite values.
template <typename scalar_t>
struct FiniteSum {
  FiniteValues<scalar_t> x;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t t, int64_t n, Sums<double, 2>& sums) const {
    const double value = x(panel, t, n);
    sums.term[0] += value == value ? value : 0, sums.term[1] += value == value ? 1 : 0;
  }
};

// The smoothers of the phases, the trend and the low pass. If T is not a multiple of the period, the first phases are
// one row longer.
struct Smoothers {
  std::vector<Loess> phases;
  std::optional<Loess> trend, low_pass;

  template <typename Allocate>
  Smoothers(const Tensor& like, const Allocate& allocate, const Panels& panels, int64_t period,
            const std::vector<int64_t>& lengths, const std::vector<int64_t>& degrees, const std::vector<int64_t>& jumps,
            const RowWeights& weights) {
    STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3,
                    "stl: lengths, degrees and jumps must have 3 elements");
    const auto smoother = [&](int i) { return Smoother{lengths[i], degrees[i], jumps[i]}; };
    const int64_t batch = panels.batch, steps = panels.steps, longer = steps % period, rows = steps / period;
    const auto rows_from = [&](int64_t first_phase) { return Layout{steps, period, panels.assets, first_phase}; };
    if (longer) phases.emplace_back(like, allocate, batch, rows_from(0), longer, rows + 1, smoother(0), true, weights);
    phases.emplace_back(like, allocate, batch, rows_from(longer), period - longer, rows, smoother(0), true, weights);
    const Layout all{steps, 1, panels.assets, 0};
    trend.emplace(like, allocate, batch, all, 1, steps, smoother(1), false, weights);
    low_pass.emplace(like, allocate, batch, all, 1, steps, smoother(2), false, RowWeights{});
  }
  void update_factors(const Tensor& like) const {
    for (const Loess& loess : phases) loess.update_factors(like);
    trend->update_factors(like);
  }
};

}  // namespace on_gpu
}  // namespace commodity
