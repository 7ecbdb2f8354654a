// Sums over trailing windows of as many columns as a vector holds, row by row.
#pragma once
#include "native.h"
#include "simd.h"

namespace commodity {

constexpr int64_t kAhead = 16;  // rows to fetch before they are needed: no prefetcher follows a stride of a whole row

// As many columns of a panel as a vector of `number_t` holds, or fewer; what is not there reads as NaN, and so does a
// price that is not finite.
template <typename scalar_t, typename number_t, bool whole>
struct Columns {
  using Vec = commodity::Vec<number_t>;
  const scalar_t* x;
  int64_t steps, stride, width;

  void read(int64_t t, Vec& price) const {
    scalar_t row[Simd<number_t>::count];
    if (!whole) std::fill(std::copy_n(x + t * stride, width, row), std::end(row), scalar_t(NAN));
    load<number_t>(price, whole ? x + t * stride : row);
    price += price - price;  // infinity - infinity is NaN
  }

  void write(int64_t t, const Vec& values, scalar_t* y) const {
    y += t * stride;
    if (whole) return store<number_t>(values, y);
    for (int64_t n = 0; n < width; ++n) y[n] = static_cast<scalar_t>(values[n]);
  }

  void fetch(int64_t t) const { __builtin_prefetch(x + t * stride); }
};

// Sums of `kTerms` terms over the last `window` rows, which are `before` until there are as many.
//
// Time is cut into blocks of a window's length. A window that starts in one block ends in the next, so its sum is a
// suffix of the first plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. A missing price makes NaN of exactly the sums that hold it.
template <typename scalar_t, int kTerms>
struct Trailing {
  using Terms = Vec<scalar_t>[kTerms];
  const int64_t window;
  const scalar_t before;
  Terms sum = {}, prefix = {};
  int64_t start = 0;           // of the block that a row is in
  Many<Vec<scalar_t>> suffix;  // of the block before, by the row at which it starts

  explicit Trailing(int64_t window, scalar_t before = NAN)
      : window(window), before(before), suffix((window + 1) * kTerms) {}

  bool turns(int64_t t) const { return t == 0 || t == start + window; }

  // terms(row, to) may know the first row of the block that t is in: every window that ends in it holds that row.
  template <typename Terms_>
  void advance(int64_t t, const Terms_& terms) {
    if (turns(t)) turn(t, terms);
    Terms now;
    terms(t, now);
    const Vec<scalar_t>* rest = &suffix[(t - start + 1) * kTerms];
    for (int k = 0; k < kTerms; ++k) prefix[k] += now[k], sum[k] = prefix[k] + rest[k];
  }

 private:
  template <typename Terms_>
  void turn(int64_t t, const Terms_& terms) {
    start = t;
    Terms total = {}, now;
    for (int64_t r = window - 1; r > 0; --r) {
      if (t > 0) terms(t - window + r, now);
      for (int k = 0; k < kTerms; ++k) suffix[r * kTerms + k] = t > 0 ? total[k] += now[k] : Vec<scalar_t>{} + before;
    }
    for (Vec<scalar_t>& sum : prefix) sum = Vec<scalar_t>{};
  }
};

}  // namespace commodity
