// The windows of rolling correlation, as its forward and its backward pass walk through them.
//
// Time is cut into blocks of `window` rows. A window that starts in one block ends in the next, so its sum is a suffix
// of the first block plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. Values are taken against an anchor, so a high level costs no digits.
#pragma once
#include "native.h"

namespace commodity {

// The windows that start in one block of rows: window w holds rows w .. w + window - 1 of the 2 window - 1 that are
// here, and ends in row begin + w + window - 1 of the panel.
struct Group {
  const int64_t assets, width, window, rows;  // width: assets in whole vectors, so that scratch rows have no tail
  int64_t begin = 0, windows = 0;             // windows: how many end inside the panel
  bool complete = true;                       // nothing is missing, in any row
  std::vector<double> x, present, sum, scale, anchor, state;

  Group(int64_t assets, int64_t window)
      : assets(assets),
        width((assets + 7) / 8 * 8),
        window(window),
        rows(2 * window - 1),
        x(rows * width),
        present(rows * width),
        sum(window * width),
        scale(window * width),
        anchor(width),
        state(3 * width) {}

  int64_t end(int64_t w) const { return begin + w + window - 1; }

  // Rows from `first` on, against the anchor; a row outside the panel is missing, a missing value is 0.
  template <typename scalar_t>
  void load(const scalar_t* panel, int64_t first, int64_t steps) {
    begin = first, windows = std::min(window, steps - first - window + 1);
    for (int64_t n = 0; n < assets; ++n) anchor[n] = anchor_of(panel + n, steps);
    const int64_t last = windows + window - 1;
    double holes = 0;
    for (int64_t r = 0; r < rows; ++r) {
      double *to = &x[r * width], *there = &present[r * width];
      std::fill_n(to, width, 0.0), std::fill_n(there, width, 0.0);
      if (begin + r < 0 || r >= last) continue;
      const scalar_t* from = panel + (begin + r) * assets;
#pragma GCC ivdep
      for (int64_t n = 0; n < assets; ++n) {
        const double value = from[n], known = value - value == 0 ? 1 : 0;
        to[n] = known != 0 ? value - anchor[n] : 0;
        there[n] = known, holes += 1 - known;
      }
    }
    complete = begin >= 0 && holes == 0;
  }

  // The last finite value of the first block, else the first after it: no window of the group looks ahead for it.
  template <typename scalar_t>
  double anchor_of(const scalar_t* column, int64_t steps) const {
    const auto finite = [&](int64_t t) { return std::isfinite(column[t * assets]); };
    for (int64_t t = begin + window - 1; t >= std::max<int64_t>(begin, 0); --t)
      if (finite(t)) return column[t * assets];
    for (int64_t t = begin + window; t < std::min(begin + rows, steps); ++t)
      if (finite(t)) return column[t * assets];
    return 0;
  }

  // Sum and 1 / sqrt(sum of squares about the mean) of each column's windows; NaN where the column does not move.
  void columns() {
    double *total = &state[0], *squares = &state[width], *still = &state[2 * width];
    std::fill_n(total, 3 * width, 0.0);
    for (int64_t r = window - 1; r >= 0; --r) {
      const double* row = &x[r * width];
      for (int64_t n = 0; n < width; ++n) {
        sum[r * width + n] = total[n] += row[n];
        scale[r * width + n] = squares[n] += row[n] * row[n];
      }
    }
    std::fill_n(total, 2 * width, 0.0);
    for (int64_t r = 1; r < window; ++r) count_still(r, still);
    for (int64_t w = 0; w < windows; ++w) {
      const double* row = &x[(w + window - 1) * width];
      if (w > 0) count_still(w + window - 1, still);
      double *s = &sum[w * width], *v = &scale[w * width];
      for (int64_t n = 0; n < width; ++n) {
        if (w > 0) total[n] += row[n], squares[n] += row[n] * row[n];
        s[n] += total[n];
        const double variation = v[n] + squares[n] - s[n] * s[n] / window;
        v[n] = (still[n] < window - 1) & (variation > 0) ? 1 / std::sqrt(variation) : NAN;
      }
    }
  }

 private:
  // for how many rows a column has not moved
  void count_still(int64_t r, double* still) const {
    const double *now = &x[r * width], *before = now - width;
    for (int64_t n = 0; n < width; ++n) still[n] = now[n] == before[n] ? still[n] + 1 : 0;
  }
};

// Sums of column i with every other over the rows that both have, in windows with holes.
struct Shared {
  enum { kCount, kX, kY, kXX, kYY, kXY, kSums };
  const Group& group;
  const int64_t i;
  std::vector<double> suffix, prefix;

  Shared(const Group& group, int64_t i)
      : group(group), i(i), suffix((group.window + 1) * kSums * group.width), prefix(kSums * group.width) {
    const int64_t step = kSums * group.width;
    for (int64_t r = group.window - 1; r >= 0; --r) add(r, &suffix[(r + 1) * step], &suffix[r * step]);
  }

  // Window w, in turn: `total(which, j)` is its sum.
  void advance(int64_t w) {
    if (w > 0) add(w + group.window - 1, prefix.data(), prefix.data());
    before = &suffix[w * kSums * group.width];
  }

  double total(int64_t which, int64_t j) const {
    return before[which * group.width + j] + prefix[which * group.width + j];
  }

 private:
  const double* before = nullptr;

  void add(int64_t r, const double* before, double* after) const {
    const int64_t N = group.width;
    const double *x = &group.x[r * N], *present = &group.present[r * N], own = present[i], value = x[i];
#pragma GCC ivdep  // before may be after, element for element
    for (int64_t j = 0; j < N; ++j) {
      const double both = own * present[j], mine = value * both, other = x[j] * both;
      after[kCount * N + j] = before[kCount * N + j] + both;
      after[kX * N + j] = before[kX * N + j] + mine;
      after[kY * N + j] = before[kY * N + j] + other;
      after[kXX * N + j] = before[kXX * N + j] + mine * mine;
      after[kYY * N + j] = before[kYY * N + j] + other * other;
      after[kXY * N + j] = before[kXY * N + j] + mine * other;
    }
  }
};

}  // namespace commodity
