// Sums over trailing windows of a block of columns, row by row.
#pragma once
#include "native.h"

namespace commodity {

template <typename scalar_t>
using Row = scalar_t[kBlock];

// A block of columns; a price that is not finite, or before the first row, reads as NaN.
template <typename scalar_t>
struct Prices {
  const scalar_t* x;
  int64_t stride, width;

  scalar_t operator()(int64_t t, int64_t n) const {
    const scalar_t price = x[t * stride + n];
    return price + (price - price);  // infinity - infinity is NaN
  }
};

// Sums of `kTerms` terms over the last `window` rows, which are `before` until there are as many.
//
// Time is cut into blocks of a window's length. A window that starts in one block ends in the next, so its sum is a
// suffix of the first plus a prefix of the second: nothing is subtracted, a spike leaves with its row, and the bits
// depend on the rows of the window alone. A missing price makes NaN of exactly the sums that hold it.
template <typename scalar_t, int kTerms>
struct Window {
  const int64_t window;
  const scalar_t before;
  Row<scalar_t> sum[kTerms] = {};
  std::vector<Row<scalar_t>> suffix[kTerms];

  explicit Window(int64_t window, scalar_t before = NAN) : window(window), before(before) {
    for (auto& rows : suffix) rows = std::vector<Row<scalar_t>>(window + 1);
  }

  // term(k, row, n) may know the first row of the block that t is in: every window that ends in it holds that row.
  template <typename Term>
  void advance(int64_t t, int64_t width, const Term& term) {
    if (t % window == 0) turn(t, width, term);
    const int64_t next = t % window + 1;
    for (int k = 0; k < kTerms; ++k) {
      scalar_t *prefix = this->prefix[k], *total = sum[k];
      const scalar_t* rest = suffix[k][next];
      for (int64_t n = 0; n < width; ++n) {
        prefix[n] += term(k, t, n);
        total[n] = prefix[n] + rest[n];
      }
    }
  }

 private:
  Row<scalar_t> prefix[kTerms];

  template <typename Term>
  void turn(int64_t t, int64_t width, const Term& term) {
    for (int k = 0; k < kTerms; ++k) {
      std::fill_n(prefix[k], kBlock, scalar_t(0));
      for (int64_t r = window - 1; r > 0; --r) {
        scalar_t* to = suffix[k][r];
        const scalar_t* after = suffix[k][r + 1];
        if (t == 0)
          std::fill_n(to, kBlock, before);
        else
          for (int64_t n = 0; n < width; ++n) to[n] = after[n] + term(k, t - window + r, n);
      }
    }
  }
};

}  // namespace commodity
