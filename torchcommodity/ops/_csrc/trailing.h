// Trailing window sums of a group of columns in vector registers, row by row, for kernels that need several windows in
// one pass over time. The scheme is that of windows.h: suffix sums of the previous block plus a running total.
#pragma once
#include "native.h"
#include "simd.h"

namespace commodity {

constexpr int64_t kPrefetchRows = 16;  // how many rows ahead to prefetch: the hardware does not follow such strides

// As many columns of a panel as a vector of `number_t` holds, or the last few (`full` = false). Absent columns and
// values that are not finite read as NaN.
template <typename scalar_t, typename number_t, bool full>
struct Columns {
  using Vec = commodity::Vec<number_t>;
  const scalar_t* x;
  int64_t steps, stride, width;

  void read(int64_t t, Vec& price) const {
    scalar_t row[Simd<number_t>::count];
    if (!full) std::fill(std::copy_n(x + t * stride, width, row), std::end(row), scalar_t(NAN));
    load<number_t>(price, full ? x + t * stride : row);
    price += price - price;  // infinity - infinity is NaN
  }

  void write(int64_t t, const Vec& values, scalar_t* y) const {
    y += t * stride;
    if (full) return store<number_t>(values, y);
    for (int64_t n = 0; n < width; ++n) y[n] = static_cast<scalar_t>(values[n]);
  }

  void prefetch(int64_t t) const { __builtin_prefetch(x + t * stride); }
};

// Sums of `kTerms` terms over the last `window` rows, and `initial` as long as there are fewer rows. A NaN affects
// exactly the sums of the windows that contain it.
template <typename scalar_t, int kTerms>
struct TrailingSums {
  using Terms = Vec<scalar_t>[kTerms];
  const int64_t window;
  const scalar_t initial;
  Terms sum = {}, prefix = {};
  int64_t start = 0;                    // first row of the current block
  AlignedVector<Vec<scalar_t>> suffix;  // of the previous block, by the row in which it starts

  explicit TrailingSums(int64_t window, scalar_t initial = NAN)
      : window(window), initial(initial), suffix((window + 1) * kTerms) {}

  bool starts_block(int64_t t) const { return t == 0 || t == start + window; }

  // Adds row t. terms(row, to) may measure against the first row of the current block: all windows that end in the
  // block contain it.
  template <typename GetTerms>
  void advance(int64_t t, const GetTerms& terms) {
    if (starts_block(t)) start_block(t, terms);
    Terms current;
    terms(t, current);
    const Vec<scalar_t>* previous = &suffix[(t - start + 1) * kTerms];
    for (int k = 0; k < kTerms; ++k) prefix[k] += current[k], sum[k] = prefix[k] + previous[k];
  }

 private:
  template <typename GetTerms>
  void start_block(int64_t t, const GetTerms& terms) {
    start = t;
    Terms total = {}, current;
    for (int64_t r = window - 1; r > 0; --r) {
      if (t > 0) terms(t - window + r, current);
      for (int k = 0; k < kTerms; ++k)
        suffix[r * kTerms + k] = t > 0 ? total[k] += current[k] : Vec<scalar_t>{} + initial;
    }
    for (Vec<scalar_t>& sum : prefix) sum = Vec<scalar_t>{};
  }
};

}  // namespace commodity
