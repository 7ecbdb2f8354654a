// The windows of rolling correlation, as its forward and its backward pass walk through them.
//
// Time is cut into blocks of `window` rows. A window that starts in one block ends in the next, so its sum is a suffix
// of the first block plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. Values are taken against an anchor, so a high level costs no digits.
#pragma once
#include <new>

#include "native.h"

namespace commodity {

constexpr int kLanes = 4;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));

// std::vector forgets how its elements must be aligned where an attribute says so.
template <typename Value>
struct CacheLineAllocator {
  using value_type = Value;
  static constexpr std::align_val_t line{64};
  Value* allocate(size_t count) { return static_cast<Value*>(::operator new(count * sizeof(Value), line)); }
  void deallocate(Value* values, size_t) { ::operator delete(values, line); }
  bool operator==(const CacheLineAllocator&) const = default;
};

using ManyLanes = std::vector<Lanes, CacheLineAllocator<Lanes>>;

// The last finite value of the first block of a column, else the first after it: no window of the group looks ahead
// for it.
template <typename scalar_t>
double anchor_of(const scalar_t* column, int64_t stride, int64_t begin, int64_t window, int64_t steps) {
  const auto finite = [&](int64_t t) { return std::isfinite(column[t * stride]); };
  for (int64_t t = std::min(begin + window, steps) - 1; t >= std::max<int64_t>(begin, 0); --t)
    if (finite(t)) return column[t * stride];
  for (int64_t t = std::max<int64_t>(begin + window, 0); t < std::min(begin + 2 * window - 1, steps); ++t)
    if (finite(t)) return column[t * stride];
  return 0;
}

// The windows that start in one block of rows: window w holds rows w .. w + window - 1 of the 2 window - 1 that are
// here, and ends in row begin + w + window - 1 of the panel.
struct Group {
  const int64_t assets, width, window, rows;  // width: assets in whole vectors, so that scratch rows have no tail
  int64_t begin = 0, windows = 0;             // windows: how many end inside the panel
  std::vector<double> x, present;

  Group(int64_t assets, int64_t window)
      : assets(assets),
        width((assets + 7) / 8 * 8),
        window(window),
        rows(2 * window - 1),
        x(rows * width),
        present(rows * width) {}

  int64_t end(int64_t w) const { return begin + w + window - 1; }

  // Rows from `first` on, against the anchor; a row outside the panel is missing, a missing value is 0.
  template <typename scalar_t>
  void load(const scalar_t* panel, int64_t first, int64_t steps) {
    begin = first, windows = std::min(window, steps - first - window + 1);
    for (int64_t n = 0; n < assets; ++n) {
      const double anchor = anchor_of(panel + n, assets, begin, window, steps);
      for (int64_t r = 0; r < rows; ++r) {
        const bool inside = begin + r >= 0 && begin + r < steps;
        const double value = inside ? static_cast<double>(panel[(begin + r) * assets + n]) : NAN;
        present[r * width + n] = std::isfinite(value);
        x[r * width + n] = std::isfinite(value) ? value - anchor : 0;
      }
    }
  }
};

// Four groups side by side, each in a lane of its own. Columns and pairs where a group misses a value are not right.
struct Team {
  const int64_t assets, pairs, window, rows;
  int64_t begin[kLanes], windows[kLanes];  // windows: how many end inside the panel
  bool complete[kLanes];                   // nothing is missing, in any row
  ManyLanes x, sum, scale;

  Team(int64_t assets, int64_t window)
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
    const int64_t last = std::min(rows, steps - first);
    double holes = 0;
    for (int64_t n = 0; n < assets; ++n) {
      const double anchor = anchor_of(panel + n, assets, first, window, steps);
      const scalar_t* from = panel + first * assets + n;
      Lanes* to = &x[n];
      for (int64_t r = 0; r < last; ++r, from += assets, to += assets) {
        const double value = *from;
        const bool known = value - value == 0;
        (*to)[lane] = known ? value - anchor : 0;
        holes += known ? 0 : 1;
      }
      for (int64_t r = last; r < rows; ++r, to += assets) (*to)[lane] = 0;
    }
    complete[lane] = holes == 0;
  }

  // Sum and 1 / sqrt(sum of squares about the mean) of each column's windows; NaN where the column does not move.
  void columns() {
    for (auto* state : {&total, &squares, &still}) state->assign(assets, Lanes{});
    for (int64_t r = window - 1; r >= 0; --r)
      for (int64_t n = 0; n < assets; ++n)
        add(r, n), sum[r * assets + n] = total[n], scale[r * assets + n] = squares[n];
    for (int64_t r = 1; r < window; ++r)
      for (int64_t n = 0; n < assets; ++n) watch(r, n);
    for (auto* state : {&total, &squares}) state->assign(assets, Lanes{});
    for (int64_t w = 0; w < window; ++w)
      for (int64_t n = 0; n < assets; ++n) {
        if (w > 0) add(w + window - 1, n), watch(w + window - 1, n);
        const Lanes s = sum[w * assets + n] += total[n];
        const Lanes variation = scale[w * assets + n] + squares[n] - s * s / static_cast<double>(window);
        Lanes root;
        for (int l = 0; l < kLanes; ++l) root[l] = std::sqrt(variation[l]);
        const auto moves = (still[n] < static_cast<double>(window - 1)) & (variation > 0.0);
        scale[w * assets + n] = moves ? 1.0 / root : Lanes{} + NAN;
      }
  }

 private:
  ManyLanes total, squares, still;  // still: for how many rows a column has not moved

  void add(int64_t r, int64_t n) {
    const Lanes value = x[r * assets + n];
    total[n] += value, squares[n] += value * value;
  }

  void watch(int64_t r, int64_t n) {
    still[n] = x[r * assets + n] == x[(r - 1) * assets + n] ? still[n] + 1.0 : Lanes{};
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
