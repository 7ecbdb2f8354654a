// Trailing windows on a GPU: an item takes a few windows that end in neighboring rows.
//
// What all of them hold is summed once, with a suffix of what is before and a prefix of what is after. Nothing is
// subtracted, a spike leaves with its row, and the bits depend on the rows of the window alone.
#pragma once
#include "device.h"
#include "windows.h"

namespace commodity {

// How many windows go together, as a template argument: `[&]<int kRows> { ... }`. They must share a row.
template <int kMost, typename Body>
void with_rows(int64_t window, const Body& body) {
  constexpr int kFew = kMost > 8 ? 4 : 1;
  window >= kMost  ? body.template operator()<kMost>()
  : window >= kFew ? body.template operator()<kFew>()
                   : body.template operator()<1>();
}

// done(k, sum) for the windows that end in rows first + k, where see(sum, t) takes in row t and sum.with(other) joins.
template <int kRows, typename Sum, typename See, typename Done>
COMMODITY_INLINE void over_windows(int64_t first, int64_t window, const See& see, const Done& done) {
  Sum suffix[kRows], sum{}, prefix{};
#pragma unroll 4
  for (int64_t t = first - window + kRows; t <= first; ++t) see(sum, t);
  suffix[kRows - 1] = sum;
#pragma unroll
  for (int k = kRows - 2; k >= 0; --k) {
    see(sum, first - window + 1 + k);
    suffix[k] = sum;
  }
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (k > 0) see(prefix, first + k);
    done(k, suffix[k].with(prefix));
  }
}

// One number for each of kTerms.
template <typename Number, int kTerms>
struct Sums {
  Number of[kTerms] = {};
  COMMODITY_INLINE Sums with(const Sums& other) const {
    Sums both;
    for (int i = 0; i < kTerms; ++i) both.of[i] = of[i] + other.of[i];
    return both;
  }
};

// A batch of panels as windows read it: NaN where a value is not finite, or not there.
template <typename scalar_t>
struct Values {
  const scalar_t* x;
  int64_t steps, assets;

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE bool has(int64_t t) const { return t >= 0 && t < steps; }
  COMMODITY_INLINE scalar_t operator()(int64_t panel, int64_t t, int64_t n) const {
    if (!has(t)) return NAN;
    const scalar_t value = read(x + at(panel, t, n));
    return value + (value - value);
  }
};

// The first finite value of each column: what sums over all time are taken against.
template <typename scalar_t>
struct FirstFinite {
  Values<scalar_t> x;
  double* to;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t) const {
    double first = NAN;
    for (int64_t t = 0; t < x.steps && first != first; ++t) first = x(panel, t, n);
    to[panel * x.assets + n] = first;
  }
};

template <typename scalar_t>
Values<scalar_t> values_of(const Tensor& x, const Panels& panels) {
  return {x.const_data_ptr<scalar_t>(), panels.steps, panels.assets};
}

// body(panel, column, first) for every kRows rows of every column, with kRows = kMost or 1.
template <typename Body>
struct FromRow {
  Body body;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t column, int64_t chunk) const {
    body(panel, column, chunk * Body::kRows);
  }
};

template <typename Body>
void launch_windows(const Tensor& on, const Panels& panels, const Body& body) {
  launch_grid(on, Grid(panels.batch, panels.assets, (panels.steps + Body::kRows - 1) / Body::kRows),
              FromRow<Body>{body});
}

}  // namespace commodity
