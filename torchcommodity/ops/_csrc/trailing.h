// Trailing window sums of a group of columns in vector registers, row by row, for kernels that need several windows in
// one pass over time. The scheme is that of windows.h: suffix sums of the previous block plus a running total.
#pragma once
#include "native.h"
#include "simd.h"

namespace commodity {

constexpr int64_t kPrefetchRows = 16;  // how many rows ahead to prefetch: the hardware does not follow such strides

// As many columns of a panel as a vector of `number_t` holds. Values that are not finite read as NaN.
template <typename scalar_t, typename number_t>
struct Columns {
  using Vec = commodity::Vec<number_t>;
  const scalar_t* x;
  int64_t steps, stride;

  void read(int64_t t, Vec& price) const {
    load<number_t>(price, x + t * stride);
    price += price - price;  // infinity - infinity is NaN
  }

  void write(int64_t t, const Vec& values, scalar_t* y) const { store<number_t>(values, y + t * stride); }

  void prefetch(int64_t t) const { __builtin_prefetch(x + t * stride); }
};

// A panel's last columns, fewer than a vector holds, as rows of a whole vector of `channels` values per column: the
// absent ones are NaN. Kernels run on it as on the panel, so that they are compiled for whole vectors only.
template <typename scalar_t, int count, int channels = 1>
struct PaddedColumns {
  std::vector<scalar_t> rows;
  const int64_t steps, stride, width;  // of the panel

  PaddedColumns(int64_t steps, int64_t stride, int64_t width)
      : rows(steps * channels * count, scalar_t(NAN)), steps(steps), stride(stride), width(width) {}

  const scalar_t* read(const scalar_t* x) {
    for (int64_t t = 0; t < steps; ++t)
      std::copy_n(x + t * channels * stride, channels * width, &rows[t * channels * count]);
    return rows.data();
  }

  void write(scalar_t* y) const {
    for (int64_t t = 0; t < steps; ++t)
      std::copy_n(&rows[t * channels * count], channels * width, y + t * channels * stride);
  }
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
