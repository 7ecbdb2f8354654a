// Shares of exponentially weighted means for a block of columns, a few rows at a time.
//
// Each share costs a division. Where all columns have the same weights and no value is missing, the shares of the first
// column are those of all columns.
#pragma once
#include <memory>

#include "ewm_weights.h"
#include "windows.h"

namespace commodity {

constexpr int64_t kRows = 32;  // rows whose shares are computed at once

struct EwmBlock {
  const int64_t stride, width;
  const bool adjust, ignore_na;
  const double min_periods;
  double alpha[kStrip], count[kStrip] = {}, undefined[kStrip] = {};  // undefined: rows before min_periods values
  EwmWeight weight[kStrip];

  template <typename scalar_t>
  EwmBlock(const scalar_t* alphas, int64_t stride, int64_t width, bool adjust, bool ignore_na, int64_t min_periods)
      : stride(stride),
        width(width),
        adjust(adjust),
        ignore_na(ignore_na),
        min_periods(double(std::max<int64_t>(1, min_periods))) {
    std::copy_n(alphas, width, alpha);
  }

  // The state of the shares: rows of `stride` numbers, total weight and count of each column.
  inline void load(const double* state) {
    for (int64_t n = 0; n < width; ++n) weight[n].total = state[n], count[n] = state[stride + n];
  }
  inline void store(double* state) const {
    for (int64_t n = 0; n < width; ++n) state[n] = weight[n].total, state[stride + n] = count[n];
  }

  // Computes the shares of the next kRows rows, or of the `remaining` ones: kStrip numbers per row. Returns true if the
  // first share of each row holds for all columns, none of which is missing. Both cases use the same arithmetic, so
  // that later or neighboring values do not change a bit.
  template <typename scalar_t>
  inline bool next(const scalar_t* x, int64_t remaining, double* share) {
    const int64_t rows = std::min(kRows, remaining);
    const bool shared = same_weights() && all_finite(x, rows, stride, width, remaining);
    const int64_t columns = shared ? 1 : width;
    for (int64_t j = 0; j < rows; ++j, x += stride, share += kStrip)
      for (int64_t n = 0; n < columns; ++n) {
        const bool valid = x[n] - x[n] == 0;
        share[n] = weight[n].next(valid, alpha[n], adjust, ignore_na);
        count[n] += valid ? 1 : 0;
        undefined[n] += count[n] < min_periods ? 1 : 0;
      }
    if (shared) std::fill_n(weight + 1, width - 1, weight[0]);
    return shared;
  }

 private:
  inline bool same_weights() const {
    bool same = true;
    for (int64_t n = 0; n < width; ++n)
      same &= (weight[n].total == weight[0].total) & (alpha[n] == alpha[0]) & (count[n] >= min_periods);
    return same;
  }
};

}  // namespace commodity
