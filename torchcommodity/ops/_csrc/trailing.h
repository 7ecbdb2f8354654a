// Trailing window sums for kernels that need several windows in one pass over time, written once for both devices. The
// CPU walks row by row with a group of columns in vector registers, by the scheme of windows.h: suffix sums of the
// previous block plus a running total. A thread of a GPU takes a few rows of one column (device_windows.h).
#pragma once
#include "kernel.h"
#if defined(COMMODITY_GPU)
#include "device_windows.h"
#else
#include "simd.h"
#endif

namespace commodity {

// How many rows ahead a CPU prefetches: the hardware does not follow such strides.
constexpr int64_t kPrefetchColumnRows = 16;

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// A column of a panel. Values that are not finite read as NaN, rows after the last one as the last one. In 32 bits,
// rows and strides take a quarter of the instructions.
template <typename scalar_t, typename number_t>
struct PanelColumns {
  using Vec = number_t;
  const scalar_t* x;
  int steps, stride;

  COMMODITY_INLINE PanelColumns(const scalar_t* x, int64_t steps, int64_t stride)
      : x(x), steps(static_cast<int>(steps)), stride(static_cast<int>(stride)) {}
  COMMODITY_INLINE int64_t at(int64_t t) const {
    const int row = static_cast<int>(t);
    return int64_t(row < steps ? row : steps - 1) * stride;
  }
  COMMODITY_INLINE void read(int64_t t, number_t& price) const {
    const scalar_t value = commodity::read(x + at(t));
    price = value + (value - value);
  }
  COMMODITY_INLINE void prefetch(int64_t) const {}
  COMMODITY_INLINE PanelColumns reversed() const { return {x + at(steps - 1), steps, -stride}; }

  static COMMODITY_INLINE void root(number_t& x) { x = std::sqrt(x); }

  // The last row before row t that has a price, -1 if there is none.
  COMMODITY_INLINE int64_t row_before(int64_t t) const {
    for (number_t price; --t >= 0;) {
      read(t, price);
      if (price == price) break;
    }
    return t;
  }
};

// The four channels of a column.
template <typename scalar_t>
struct alignas(16) FourValues {
  scalar_t value[4];
};
template <typename scalar_t, typename number_t>
struct FourColumns {
  PanelColumns<scalar_t, number_t> columns;

  COMMODITY_INLINE FourColumns(const scalar_t* x, int64_t steps, int64_t stride) : columns(x, steps, stride) {}
  COMMODITY_INLINE void read(int64_t t, number_t (&to)[4]) const {
    const auto row = reinterpret_cast<const FourValues<scalar_t>*>(columns.x)[columns.at(t)];
    for (int k = 0; k < 4; ++k) to[k] = row.value[k];
  }
  COMMODITY_INLINE void prefetch(int64_t) const {}
};
template <typename scalar_t>
COMMODITY_INLINE void write_four(const scalar_t (&x)[4], scalar_t* to) {
  *reinterpret_cast<FourValues<scalar_t>*>(to) = {x[0], x[1], x[2], x[3]};
}

// Sums of `kTerms` terms over the `window` rows that end in each of kRows consecutive rows.
template <typename number_t, int kTerms, int kRows>
struct TrailingSums {
  int window;
  number_t initial;

  COMMODITY_INLINE explicit TrailingSums(int64_t window, number_t initial = NAN)
      : window(static_cast<int>(window)), initial(initial) {}
  COMMODITY_INLINE bool starts_block(int64_t) const { return true; }
  template <typename GetTerms, typename Finish>
  COMMODITY_INLINE void advance(int64_t t, const GetTerms& terms, const Finish& finish) const {
    const auto add = [&](Sums<number_t, kTerms>& sums, int r) {
      number_t current[kTerms];
      terms(r > 0 ? r : 0, current);
      for (int k = 0; k < kTerms; ++k) sums.term[k] += r >= 0 ? current[k] : initial;
    };
    for_each_window<kRows, Sums<number_t, kTerms>>(
        static_cast<int>(t), window, add, [&](int k, const Sums<number_t, kTerms>& sums) { finish(k, sums.term); });
  }
};

}  // namespace on_gpu
#else
inline namespace on_cpu {

// As many columns of a panel as a vector of `number_t` holds. Values that are not finite read as NaN.
template <typename scalar_t, typename number_t>
struct PanelColumns {
  using Vec = commodity::Vec<number_t>;
  const scalar_t* x;
  int64_t steps, stride;

  COMMODITY_INLINE void read(int64_t t, Vec& price) const {
    load<number_t>(price, x + t * stride);
    price += price - price;  // infinity - infinity is NaN
  }
  COMMODITY_INLINE void write(int64_t t, const Vec& values, scalar_t* y) const {
    store<number_t>(values, y + t * stride);
  }
  COMMODITY_INLINE void prefetch(int64_t t) const { __builtin_prefetch(x + t * stride); }
  COMMODITY_INLINE PanelColumns reversed() const { return {x + (steps - 1) * stride, steps, -stride}; }
  static COMMODITY_INLINE void root(Vec& x) { square_root<number_t>(x); }
};

// The four channels of as many columns as a vector of float64 holds.
template <typename scalar_t, typename number_t>
struct FourColumns {
  static_assert(Simd<number_t>::count == 4, "interleave is its own inverse for four columns");
  const scalar_t* x;
  int64_t steps, stride;

  COMMODITY_INLINE void read(int64_t t, Vec<number_t> (&to)[4]) const {
    Vec<number_t> columns[4];
    for (int k = 0; k < 4; ++k) load<number_t>(columns[k], x + 4 * t * stride + 4 * k);
    interleave<number_t>(columns, to);
  }
  COMMODITY_INLINE void prefetch(int64_t t) const { __builtin_prefetch(x + 4 * t * stride); }
};
template <typename scalar_t>
COMMODITY_INLINE void write_four(const Vec<scalar_t> (&x)[4], scalar_t* to) {
  Vec<scalar_t> rows[4];
  interleave<scalar_t>(x, rows);
  for (int k = 0; k < 4; ++k) store<scalar_t>(rows[k], to + k * Simd<scalar_t>::count);
}

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
template <typename scalar_t, int kTerms, int kRows>
struct TrailingSums {
  static_assert(kRows == 1);
  using Terms = Vec<scalar_t>[kTerms];
  const int64_t window;
  const scalar_t initial;
  Terms sum = {}, prefix = {};
  int64_t start = 0;                    // first row of the current block
  AlignedVector<Vec<scalar_t>> suffix;  // of the previous block, by the row in which it starts

  explicit TrailingSums(int64_t window, scalar_t initial = NAN)
      : window(window), initial(initial), suffix((window + 1) * kTerms) {}

  COMMODITY_INLINE bool starts_block(int64_t t) const { return t == 0 || t == start + window; }

  // Adds row t, and calls finish(0, sum): on a GPU, the kRows rows from t on, and finish(k, sum) for each.
  // terms(row, to) may measure against the first row of the current block: all windows that end in the block contain
  // it. On a GPU, these rows are the block.
  template <typename GetTerms, typename Finish>
  COMMODITY_INLINE void advance(int64_t t, const GetTerms& terms, const Finish& finish) {
    if (starts_block(t)) start_block(t, terms);
    Terms current;
    terms(t, current);
    const Vec<scalar_t>* previous = &suffix[(t - start + 1) * kTerms];
    for (int k = 0; k < kTerms; ++k) prefix[k] += current[k], sum[k] = prefix[k] + previous[k];
    finish(0, sum);
  }

 private:
  template <typename GetTerms>
  COMMODITY_INLINE void start_block(int64_t t, const GetTerms& terms) {
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

}  // namespace on_cpu
#endif

}  // namespace commodity
