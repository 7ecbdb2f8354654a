// The shares of exponential averages for a block of columns, a few rows at a time.
//
// A share costs a division. Where all columns weigh alike and nothing is missing, those of one column are all's.
#pragma once
#include <memory>

#include "ewm_weights.h"
#include "windows.h"

namespace commodity {

constexpr int64_t kRows = 32;  // whose shares are found together

struct EwmBlock {
  const int64_t stride, width;
  const bool adjust, ignore_na;
  const double least;
  double alpha[kStrip], count[kStrip] = {}, unknown[kStrip] = {};  // rows with too few values: they come first
  EwmWeight weight[kStrip];

  template <typename scalar_t>
  EwmBlock(const scalar_t* alpha_, int64_t stride, int64_t width, bool adjust, bool ignore_na, int64_t min_periods)
      : stride(stride),
        width(width),
        adjust(adjust),
        ignore_na(ignore_na),
        least(double(std::max<int64_t>(1, min_periods))) {
    std::copy_n(alpha_, width, alpha);
  }

  // The shares of kRows rows, or what is left, kStrip numbers each, and whether the first of each is that of all
  // columns, which then all are known. Both ways go through the same arithmetic: what comes later must not change a
  // bit.
  template <typename scalar_t>
  inline bool next(const scalar_t* x, int64_t left, double* share) {
    const int64_t rows = std::min(kRows, left);
    const bool one = alike() && all_finite(x, rows, stride, width, left);
    const int64_t columns = one ? 1 : width;
    for (int64_t j = 0; j < rows; ++j, x += stride, share += kStrip)
      for (int64_t n = 0; n < columns; ++n) {
        const bool present = x[n] - x[n] == 0;
        share[n] = weight[n].next(present, alpha[n], adjust, ignore_na);
        count[n] += present ? 1 : 0;
        unknown[n] += count[n] < least ? 1 : 0;
      }
    if (one) std::fill_n(weight + 1, width - 1, weight[0]);
    return one;
  }

 private:
  inline bool alike() const {
    bool all = true;
    for (int64_t n = 0; n < width; ++n)
      all &= (weight[n].old == weight[0].old) & (alpha[n] == alpha[0]) & (count[n] >= least);
    return all;
  }
};

}  // namespace commodity
