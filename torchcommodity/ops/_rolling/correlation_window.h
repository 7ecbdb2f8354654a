// The window sums of rolling correlation, for its forward and its backward pass.
//
// The scheme is that of windows.h, seen from the block in which a window starts: the `window` windows that start in one
// block form a group. Their sums are suffix sums of that block plus prefix sums of the next, so a group needs
// 2 window - 1 rows. Values are taken relative to an anchor of their column, so that a high level costs no digits.
//
// Groups without missing values are computed four at a time, one per SIMD lane (GroupBatch). In a group with missing
// values each pair of columns has rows of its own (WindowGroup, PairSums).
#pragma once
#include "native.h"
#include "simd.h"

namespace commodity {

using GroupLanes = Vec<double>;
constexpr int kLanes = Simd<double>::count;

// The last finite value in the first block, else the first one after it. So no window reads an anchor from a row after
// its last one.
template <typename scalar_t>
double find_anchor(const scalar_t* column, int64_t stride, int64_t begin, int64_t window, int64_t steps) {
  const auto finite = [&](int64_t t) { return std::isfinite(column[t * stride]); };
  for (int64_t t = std::min(begin + window, steps) - 1; t >= std::max<int64_t>(begin, 0); --t)
    if (finite(t)) return column[t * stride];
  for (int64_t t = std::max<int64_t>(begin + window, 0); t < std::min(begin + 2 * window - 1, steps); ++t)
    if (finite(t)) return column[t * stride];
  return 0;
}

// The windows that start in one block of rows. Window w consists of rows w .. w + window - 1 of the group and ends in
// row begin + w + window - 1 of the panel.
struct WindowGroup {
  const int64_t assets, width, window, rows;  // width: assets in whole vectors, so that loops have no remainder
  int64_t begin = 0, windows = 0;             // windows: number that end inside the panel
  std::vector<double> x, valid;

  WindowGroup(int64_t assets, int64_t window)
      : assets(assets),
        width((assets + 7) / 8 * 8),
        window(window),
        rows(2 * window - 1),
        x(rows * width),
        valid(rows * width) {}

  int64_t end(int64_t w) const { return begin + w + window - 1; }

  // Loads the rows from `first` on, minus the anchor. A row outside the panel counts as missing; missing values are 0.
  template <typename scalar_t>
  void load(const scalar_t* panel, int64_t first, int64_t steps) {
    begin = first, windows = std::min(window, steps - first - window + 1);
    for (int64_t n = 0; n < assets; ++n) {
      const double anchor = find_anchor(panel + n, assets, begin, window, steps);
      for (int64_t r = 0; r < rows; ++r) {
        const bool inside = begin + r >= 0 && begin + r < steps;
        const double value = inside ? static_cast<double>(panel[(begin + r) * assets + n]) : NAN;
        valid[r * width + n] = std::isfinite(value);
        x[r * width + n] = std::isfinite(value) ? value - anchor : 0;
      }
    }
  }
};

// Four groups, one per lane. Results are wrong in the columns and pairs of a group that has missing values there.
struct GroupBatch {
  const int64_t assets, pairs, window, rows;
  int64_t begin[kLanes], windows[kLanes];  // windows: number that end inside the panel
  bool complete[kLanes];                   // no row has a missing value
  AlignedVector<GroupLanes> x, sum, scale;

  GroupBatch(int64_t assets, int64_t window)
      : assets(assets),
        pairs(assets * (assets - 1) / 2),
        window(window),
        rows(2 * window - 1),
        x(rows * assets),
        sum(window * assets),
        scale(window * assets) {}

  template <typename scalar_t>
  void load(int lane, const scalar_t* panel, int64_t first, int64_t steps) {
    begin[lane] = first, windows[lane] = std::min(window, steps - first - window + 1);
    const int64_t stride = assets, last = std::min(rows, steps - first);  // no store can change a local variable
    int64_t missing = 0;
    for (int64_t n = 0; n < stride; ++n) {
      const double anchor = find_anchor(panel + n, stride, first, window, steps);
      const scalar_t* input = panel + first * stride + n;
      GroupLanes* output = &x[n];
      for (int64_t r = 0; r < last; ++r, input += stride, output += stride) {
        const double value = *input;
        const bool finite = value - value == 0;
        (*output)[lane] = finite ? value - anchor : 0;
        missing += !finite;
      }
      for (int64_t r = last; r < rows; ++r, output += stride) (*output)[lane] = 0;
    }
    complete[lane] = missing == 0;
  }

  // For each window of each column, the sum and 1 / sqrt(sum of squares about the mean), NaN if the column is constant.
  void compute_columns() {
    for (auto* state : {&total, &squares, &repeats}) state->assign(assets, GroupLanes{});
    const Columns columns{assets, x.data(), total.data(), squares.data(), repeats.data()};
    GroupLanes *const sums = sum.data(), *const scales = scale.data();
    for (int64_t r = window - 1; r >= 0; --r)
      for (int64_t n = 0, i = r * columns.assets; n < columns.assets; ++n, ++i)
        columns.add(r, n), sums[i] = columns.total[n], scales[i] = columns.squares[n];
    for (int64_t r = 1; r < window; ++r)
      for (int64_t n = 0; n < columns.assets; ++n) columns.count_repeats(r, n);
    for (auto* state : {&total, &squares}) state->assign(assets, GroupLanes{});
    const double count = static_cast<double>(window);
    for (int64_t w = 0, last = window - 1; last < rows; ++w, ++last)
      for (int64_t n = 0, i = w * columns.assets; n < columns.assets; ++n, ++i) {
        if (w > 0) columns.add(last, n), columns.count_repeats(last, n);
        const GroupLanes s = sums[i] += columns.total[n];
        const GroupLanes variation = scales[i] + columns.squares[n] - s * s / count;
        GroupLanes root = variation;
        square_root<double>(root);
        const auto varies = (columns.repeats[n] < count - 1) & (variation > 0.0);
        scales[i] = varies ? 1.0 / root : GroupLanes{} + NAN;
      }
  }

 private:
  // What is known of each column at a row; a local variable, since a store could change the pointers of a member.
  struct Columns {
    const int64_t assets;
    const GroupLanes* const x;
    GroupLanes *const total, *const squares, *const repeats;

    void add(int64_t r, int64_t n) const {
      const GroupLanes value = x[r * assets + n];
      total[n] += value, squares[n] += value * value;
    }
    void count_repeats(int64_t r, int64_t n) const {
      repeats[n] = x[r * assets + n] == x[(r - 1) * assets + n] ? repeats[n] + 1.0 : GroupLanes{};
    }
  };
  AlignedVector<GroupLanes> total, squares, repeats;  // repeats: number of latest rows equal to the row before
};

// Sums of column i with every other column, over the rows in which both are valid.
struct PairSums {
  enum { kCount, kX, kY, kXX, kYY, kXY, kSums };
  const WindowGroup& group;
  const int64_t i;
  std::vector<double> suffix, prefix;

  PairSums(const WindowGroup& group, int64_t i)
      : group(group), i(i), suffix((group.window + 1) * kSums * group.width), prefix(kSums * group.width) {
    const int64_t step = kSums * group.width;
    for (int64_t r = group.window - 1; r >= 0; --r) add(r, &suffix[(r + 1) * step], &suffix[r * step]);
  }

  // Moves on to window w; call it for w = 0, 1, 2, ... Then `total(sum, j)` is the sum over that window.
  void advance(int64_t w) {
    if (w > 0) add(w + group.window - 1, prefix.data(), prefix.data());
    window_suffix = &suffix[w * kSums * group.width];
  }

  double total(int64_t sum, int64_t j) const {
    return window_suffix[sum * group.width + j] + prefix[sum * group.width + j];
  }

 private:
  const double* window_suffix = nullptr;

  // after = before + the terms of row r
  void add(int64_t r, const double* before, double* after) const {
    const int64_t N = group.width;
    const double *x = &group.x[r * N], *valid = &group.valid[r * N], valid_i = valid[i], x_i = x[i];
    COMMODITY_IVDEP  // before may be after, element for element
    for (int64_t j = 0; j < N; ++j) {
      const double common = valid_i * valid[j], u = x_i * common, v = x[j] * common;
      after[kCount * N + j] = before[kCount * N + j] + common;
      after[kX * N + j] = before[kX * N + j] + u;
      after[kY * N + j] = before[kY * N + j] + v;
      after[kXX * N + j] = before[kXX * N + j] + u * u;
      after[kYY * N + j] = before[kYY * N + j] + v * v;
      after[kXY * N + j] = before[kXY * N + j] + u * v;
    }
  }
};

}  // namespace commodity
