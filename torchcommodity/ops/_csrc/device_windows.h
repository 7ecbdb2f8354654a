// Rolling windows on a GPU: one item computes kRows windows that end in consecutive rows of a column.
//
//     first - window + 1                 first
//     |  s  s  s | c  c  c  c  c  c  c  c | p  p  p |      kRows = 4
//
// The rows that all of its windows share (c) are summed once. Window k adds the last kRows - 1 - k of the rows before
// them (s) and the first k of the rows after them (p). As on the CPU (windows.h) nothing is subtracted, so an outlier
// leaves no trace once it is out of the window.
#pragma once
#include "device.h"
#include "windows.h"

namespace commodity {

// Passes the number of windows per item as a template argument, kMaxRows or fewer if the windows would not share a row:
// dispatch_rows<8>(window, [&]<int kRows>() { ... }).
template <int kMaxRows, typename Body>
void dispatch_rows(int64_t window, const Body& body) {
  constexpr int kFewRows = kMaxRows > 8 ? 4 : 1;
  window >= kMaxRows   ? body.template operator()<kMaxRows>()
  : window >= kFewRows ? body.template operator()<kFewRows>()
                       : body.template operator()<1>();
}

// Calls finish(k, sum) for the kRows windows that end in rows first + k. add(sum, t) adds row t to a sum, and
// sum.combine(other) is the sum of both.
template <int kRows, typename Sum, typename Row, typename Add, typename Finish>
COMMODITY_INLINE void for_each_window(Row first, Row window, const Add& add, const Finish& finish) {
  Sum suffix[kRows], sum{}, prefix{};
#pragma unroll 4
  for (Row t = first - window + kRows; t <= first; ++t) add(sum, t);
  suffix[kRows - 1] = sum;
#pragma unroll
  for (int k = kRows - 2; k >= 0; --k) {
    add(sum, first - window + 1 + k);
    suffix[k] = sum;
  }
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (k > 0) add(prefix, first + k);
    finish(k, suffix[k].combine(prefix));
  }
}

constexpr int64_t kRunRows =
    64;  // of a thread that slides a window; a constant, so that results do not depend on the GPU

// For long windows: calls finish(t, sum, previous) for the rows t of [first, last), with the sum over the `window` rows
// that end in row t and that of the row before. add(sum, t, sign) adds row t times the sign to a sum; rows outside of
// [0, steps) are not added.
template <typename Sum, typename Add, typename Finish>
COMMODITY_INLINE void slide_window(int64_t first, int64_t last, int64_t window, int64_t steps, const Add& add,
                                   const Finish& finish) {
  Sum sum{};
  const int64_t begin = first > window ? first - window : 0, end = first < steps ? first : steps;
#pragma unroll 16
  for (int64_t t = begin; t < end; ++t) add(sum, t, 1);
  const auto slide = [&](bool inside) {  // a constant where it is called: loads without conditions run ahead
#pragma unroll 8
    for (int64_t t = first; t < last; ++t) {
      const Sum previous = sum;
      if (inside || (t >= window && t < steps + window)) add(sum, t - window, -1);
      if (inside || t < steps) add(sum, t, 1);
      finish(t, sum, previous);
    }
  };
  first >= window&& last <= steps ? slide(true) : slide(false);
}

// kTerms sums at once.
template <typename Number, int kTerms>
struct Sums {
  Number term[kTerms] = {};
  COMMODITY_INLINE Sums combine(const Sums& other) const {
    Sums total;
    for (int i = 0; i < kTerms; ++i) total.term[i] = term[i] + other.term[i];
    return total;
  }
};

// Reads a batch of panels: NaN where a value is not finite or the row is outside of the panel.
template <typename scalar_t>
struct FiniteValues {
  const scalar_t* x;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE const scalar_t* column(int64_t panel, int64_t n) const { return x + at(panel, 0, n); }
  COMMODITY_INLINE bool has_row(int64_t t) const { return uint64_t(t) < uint64_t(steps); }
  COMMODITY_INLINE scalar_t operator()(int64_t panel, int64_t t, int64_t n) const {
    if (!has_row(t)) return NAN;
    const scalar_t value = read(x + at(panel, t, n));
    return value + (value - value);
  }
};

// The first finite value of each column: the anchor that sums over all time subtract from their terms.
template <typename scalar_t>
struct FirstFinite {
  FiniteValues<scalar_t> x;
  double* anchors;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double first = NAN;
    for (int64_t t = 0; t < x.steps && first != first; ++t) first = x(panel, t, n);
    anchors[panel * x.assets + n] = first;
  }
};

template <typename scalar_t>
FiniteValues<scalar_t> finite_values(const Tensor& x, const Panels& panels) {
  return {x.const_data_ptr<scalar_t>(), panels.steps, panels.assets};
}

// Turns a chunk number into its first row.
template <typename Body>
struct WindowItem {
  Body body;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    body(panel, column, chunk * Body::kRows);
  }
};

// Calls body(panel, column, first) for every Body::kRows-th row of every column.
template <typename Body>
void launch_windows(const Tensor& like, const Panels& panels, const Body& body) {
  STD_TORCH_CHECK(panels.steps <= std::numeric_limits<int>::max(),
                  "rolling windows on a GPU: at most 2^31 - 1 rows, got ", panels.steps);
  launch_grid(like, Grid(panels.batch, panels.assets, (panels.steps + Body::kRows - 1) / Body::kRows),
              WindowItem<Body>{body});
}

}  // namespace commodity
