// Pearson correlation of every pair over the last `window` rows of (..., T, N): (..., T, N, N).
//
// Time is cut into blocks of `window` rows. A window that starts in one block ends in the next, so its sum is a suffix
// of the first block plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. Values are taken against an anchor, so a high level costs no digits.
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kScratch = 1 << 15;  // doubles of suffix sums that are kept together: they stay in the cache

// The windows that start in one block of rows: window j holds rows j .. j + window - 1 of the 2 window - 1 that are
// here.
struct Group {
  const int64_t assets, width, window, rows;  // width: assets in whole vectors, so that scratch rows have no tail
  std::vector<double> x, present, sum, scale, suffix, prefix;
  std::vector<char> holed;

  Group(int64_t assets, int64_t window)
      : assets(assets),
        width((assets + 7) / 8 * 8),
        window(window),
        rows(2 * window - 1),
        x(rows * width),
        present(rows * width),
        sum(window * width),
        scale(window * width),
        holed(window * assets) {}

  // Rows from `begin` on, against the anchor; a row outside the panel is missing, a missing value is 0.
  template <typename scalar_t>
  void load(const scalar_t* panel, int64_t begin, int64_t steps) {
    for (int64_t n = 0; n < assets; ++n) {
      const auto value = [&](int64_t r) {
        const bool inside = begin + r >= 0 && begin + r < steps;
        return inside ? static_cast<double>(panel[(begin + r) * assets + n]) : NAN;
      };
      const double anchor = value(anchor_row(value));
      for (int64_t r = 0, missing = -1; r < rows; ++r) {
        const bool finite = std::isfinite(value(r));
        if (!finite) missing = r;
        present[r * width + n] = finite;
        x[r * width + n] = finite ? value(r) - anchor : 0;
        if (r >= window - 1) holed[(r - window + 1) * assets + n] = missing >= r - window + 1;
      }
    }
  }

  // The last value of the first block, else the first after it: no window of the group looks ahead for it.
  template <typename Value>
  int64_t anchor_row(const Value& value) const {
    for (int64_t r = window - 1; r >= 0; --r)
      if (std::isfinite(value(r))) return r;
    for (int64_t r = window; r < rows; ++r)
      if (std::isfinite(value(r))) return r;
    return 0;
  }

  // Sum and 1 / sqrt(sum of squares about the mean) of each column's windows; NaN where the column does not move.
  void columns() {
    for (int64_t n = 0; n < assets; ++n) {
      double total = 0, squares = 0;
      for (int64_t r = window - 1; r >= 0; --r) {
        const double value = x[r * width + n];
        sum[r * width + n] = total += value;
        scale[r * width + n] = squares += value * value;
      }
      total = squares = 0;
      for (int64_t r = 0, still = 0; r < rows; ++r) {
        const double value = x[r * width + n];
        still = r > 0 && value == x[(r - 1) * width + n] ? still + 1 : 1;
        if (r < window - 1) continue;
        const int64_t at = (r - window + 1) * width + n;
        if (r >= window) total += value, squares += value * value;
        const double s = sum[at] += total, variation = scale[at] + squares - s * s / window;
        scale[at] = still < window && variation > 0 ? 1 / std::sqrt(variation) : NAN;
      }
    }
  }
};

template <typename scalar_t>
inline scalar_t clip(double r) {
  return static_cast<scalar_t>(r > 1 ? 1 : r < -1 ? -1 : r);  // NaN stays
}

// Rows [first, last) of the matrices of windows that miss nothing. `to` is the matrix of window 0.
template <typename scalar_t>
inline void complete(Group& g, int64_t first, int64_t last, int64_t skip, int64_t windows, scalar_t* to) {
  const int64_t N = g.width, tile = (last - first) * N;
  g.suffix.resize(g.window * tile);
  g.prefix.assign(tile, 0.0);
  std::vector<scalar_t> row(N);
  const auto add = [&](const double* x, const double* before, double* after) {
    for (int64_t i = first; i < last; ++i, before += N, after += N) {
      const double own = x[i];
#pragma GCC ivdep  // before may be after, element for element
      for (int64_t j = 0; j < N; ++j) after[j] = before[j] + own * x[j];
    }
  };
  for (int64_t r = g.window - 1; r >= 0; --r) {
    double* after = &g.suffix[r * tile];
    add(&g.x[r * N], r + 1 < g.window ? after + tile : g.prefix.data(), after);
  }
  for (int64_t w = 0; w < windows; ++w) {
    if (w > 0) add(&g.x[(w + g.window - 1) * N], g.prefix.data(), g.prefix.data());
    if (w < skip) continue;
    const double *sum = &g.sum[w * N], *scale = &g.scale[w * N];
    for (int64_t i = first; i < last; ++i) {
      const double *before = &g.suffix[w * tile + (i - first) * N], *after = &g.prefix[(i - first) * N];
      const double mean = sum[i] / g.window, own = scale[i];
#pragma GCC ivdep
      for (int64_t j = 0; j < N; ++j)
        row[j] = clip<scalar_t>((before[j] + after[j] - mean * sum[j]) * (own * scale[j]));
      if (row[i] == row[i]) row[i] = 1;
      std::copy_n(row.data(), g.assets, to + (w * g.assets + i) * g.assets);
    }
  }
}

// Column i against every other where its window has holes: sums over the rows that both have.
template <typename scalar_t>
inline void pairwise(Group& g, int64_t i, int64_t min_periods, int64_t skip, int64_t windows, scalar_t* to) {
  const int64_t N = g.width;
  enum { kCount, kX, kY, kXX, kYY, kXY, kSums };
  g.suffix.assign((g.window + 1) * kSums * N, 0.0);
  std::vector<double> prefix(kSums * N), still(2 * N), previous(2 * N);
  std::vector<scalar_t> row(N);
  const auto add = [&](int64_t r, const double* before, double* after) {
    const double *x = &g.x[r * N], *present = &g.present[r * N], own = present[i], value = x[i];
    for (int64_t j = 0; j < N; ++j) {
      const double both = own * present[j], mine = value * both, other = x[j] * both;
      after[kCount * N + j] = before[kCount * N + j] + both;
      after[kX * N + j] = before[kX * N + j] + mine;
      after[kY * N + j] = before[kY * N + j] + other;
      after[kXX * N + j] = before[kXX * N + j] + mine * mine;
      after[kYY * N + j] = before[kYY * N + j] + other * other;
      after[kXY * N + j] = before[kXY * N + j] + mine * other;
    }
  };
  // for how many rows that both have a column has stood still
  const auto watch = [&](int64_t r) {
    const double *x = &g.x[r * N], *present = &g.present[r * N], own = present[i], value = x[i];
    double *still_y = &still[N], *previous_y = &previous[N];
    for (int64_t j = 0; j < N; ++j) {
      const bool both = own * present[j] != 0;
      still[j] = both ? (value == previous[j] ? still[j] + 1 : 1) : still[j];
      still_y[j] = both ? (x[j] == previous_y[j] ? still_y[j] + 1 : 1) : still_y[j];
      previous[j] = both ? value : previous[j];
      previous_y[j] = both ? x[j] : previous_y[j];
    }
  };
  for (int64_t r = g.window - 1; r >= 0; --r) add(r, &g.suffix[(r + 1) * kSums * N], &g.suffix[r * kSums * N]);
  for (int64_t r = 0; r < g.window - 1; ++r) watch(r);
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t r = w + g.window - 1;
    watch(r);
    if (w > 0) add(r, prefix.data(), prefix.data());
    if (w < skip || !g.holed[w * g.assets + i]) continue;
    const double* before = &g.suffix[w * kSums * N];
    for (int64_t j = 0; j < N; ++j) {
      const auto total = [&](int64_t which) { return before[which * N + j] + prefix[which * N + j]; };
      const double count = total(kCount), x = total(kX), y = total(kY);
      const double xx = total(kXX) - x * x / count, yy = total(kYY) - y * y / count, xy = total(kXY) - x * y / count;
      const bool defined = count >= min_periods && still[j] < count && still[N + j] < count && xx > 0 && yy > 0;
      row[j] = defined ? clip<scalar_t>(xy * (1 / std::sqrt(xx) * (1 / std::sqrt(yy)))) : scalar_t(NAN);
    }
    if (row[i] == row[i]) row[i] = 1;
    scalar_t* matrix = to + w * g.assets * g.assets;
    for (int64_t j = 0; j < g.assets; ++j) matrix[i * g.assets + j] = matrix[j * g.assets + i] = row[j];
  }
}

template <typename scalar_t>
inline void correlate(Group& g, const scalar_t* panel, scalar_t* y, int64_t begin, int64_t steps, int64_t min_periods) {
  const int64_t skip = begin < 0 ? 1 : 0;  // before the first block, window 0 ends before the panel begins
  const int64_t windows = std::min(g.window, steps - begin - g.window + 1);
  scalar_t* to = y + (begin + g.window - 1) * g.assets * g.assets;
  g.load(panel, begin, steps);
  g.columns();
  if (begin >= 0) {
    const int64_t tile = std::clamp<int64_t>(kScratch / (g.window * g.width), 1, g.assets);
    for (int64_t i = 0; i < g.assets; i += tile) complete(g, i, std::min(i + tile, g.assets), skip, windows, to);
  }
  for (int64_t i = 0; i < g.assets; ++i) {
    bool any = false;
    for (int64_t w = skip; w < windows; ++w) any |= g.holed[w * g.assets + i];
    if (any) pairwise(g, i, min_periods, skip, windows, to);
  }
}

COMMODITY_SIMD void correlations(Group& g, const float* x, float* y, int64_t begin, int64_t steps, int64_t least) {
  correlate(g, x, y, begin, steps, least);
}

COMMODITY_SIMD void correlations(Group& g, const double* x, double* y, int64_t begin, int64_t steps, int64_t least) {
  correlate(g, x, y, begin, steps, least);
}

Tensor rolling_correlation(const Tensor& returns_, int64_t window, int64_t min_periods) {
  STD_TORCH_CHECK(window >= 1 && returns_.dim() >= 2, "rolling_correlation: returns (..., T, N), window >= 1");
  const Tensor returns = contiguous(returns_);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape.push_back(shape.back());
  Tensor y = on_huge_pages(new_empty(returns, shape));
  const Panels panels(returns);
  const int64_t groups = (panels.steps + window - 1) / window + 1, size = panels.steps * panels.assets * panels.assets;
  THO_DISPATCH_V2(returns.scalar_type(), "rolling_correlation", AT_WRAP([&] {
                    const scalar_t* from = returns.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    const int64_t work = window * panels.assets * (panels.assets + 8);
                    torch::stable::parallel_for(0, panels.batch * groups,
                                                std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)),
                                                [&](int64_t first, int64_t last) {
                                                  Group group(panels.assets, window);
                                                  for (int64_t k = first; k < last; ++k) {
                                                    const int64_t panel = k / groups, begin = (k % groups - 1) * window;
                                                    if (begin + window - 1 < panels.steps)
                                                      correlations(group, from + panel * panels.size(),
                                                                   to + panel * size, begin, panels.steps, min_periods);
                                                  }
                                                });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_correlation, "(Tensor returns, SymInt window, SymInt min_periods) -> Tensor")
