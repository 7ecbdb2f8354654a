// The shares of new values in exponentially weighted means, by pandas' rules: of one value, and as each device computes
// those of many.
#pragma once
#include "kernel.h"
#if !defined(COMMODITY_GPU)
#include "windows.h"
#endif

namespace commodity {
inline namespace COMMODITY_DEVICE {

struct EwmRule {
  bool adjust, ignore_na;

  // The share of the next value, zero if it is missing. `total`: the weight of all values so far, zero before the
  // first. It says where it fuses, as compilers fuse a loop over columns and its last columns differently.
  COMMODITY_INLINE double next_share(double& total, bool valid, double alpha) const {
    const double decay = valid || !ignore_na ? 1 - alpha : 1;
    const double added = adjust || total == 0 ? 1 : alpha, sum = std::fma(total, decay, added);
    total = valid ? (adjust ? sum : 1) : total * decay;
    return valid ? divide(added, sum) : 0;
  }
};

}  // namespace COMMODITY_DEVICE

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// The total weight and the number of the values so far.
struct WeightState {
  double total, count;
};

// EwmRule::next_share as a map of the total weight, which is a linear recurrence.
struct WeightMap {
  using State = WeightState;
  Affine<> total;
  double count;

  COMMODITY_INLINE static WeightMap of_row(const EwmRule& rule, bool valid, double alpha) {
    const double decay = valid && !rule.adjust ? 0 : valid || !rule.ignore_na ? 1 - alpha : 1;
    return {{decay, {valid ? 1.0 : 0.0}}, valid ? 1.0 : 0.0};
  }

  COMMODITY_INLINE State operator()(const State& state) const {
    return {total({state.total}).y[0], state.count + count};
  }
  COMMODITY_INLINE State apply(const State& state) const { return (*this)(state); }
  COMMODITY_INLINE WeightMap after(const WeightMap& first) const {
    return {total.after(first.total), first.count + count};
  }
};

}  // namespace on_gpu
#else
inline namespace on_cpu {

constexpr int64_t kRows = 32;  // rows whose shares are computed at once

// The shares of a block of columns, a few rows at a time. Each costs a division: where all columns have the same
// weights and no value is missing, the shares of the first column are those of all columns.
struct EwmBlock {
  const EwmRule rule;
  const int64_t stride, width;
  const double min_periods;
  double alpha[kStrip], total[kStrip] = {}, count[kStrip] = {};
  double undefined[kStrip] = {};  // rows before min_periods values

  template <typename scalar_t>
  EwmBlock(const EwmRule& rule, const scalar_t* alphas, int64_t stride, int64_t width, double min_periods)
      : rule(rule), stride(stride), width(width), min_periods(min_periods) {
    std::copy_n(alphas, width, alpha);
  }

  // Computes the shares of the next kRows rows, or of the `remaining` ones: `width` numbers per row. Returns true if
  // the first share of each row holds for all columns, none of which is missing. Both cases use the same arithmetic, so
  // that later or neighboring values do not change a bit.
  template <typename scalar_t>
  inline bool next(const scalar_t* x, int64_t remaining, double* share) {
    const int64_t rows = std::min(kRows, remaining);
    const bool shared = same_weights() && all_finite(x, rows, stride, width, remaining);
    const int64_t columns = shared ? 1 : width;
    for (int64_t j = 0; j < rows; ++j, x += stride, share += width)
      for (int64_t n = 0; n < columns; ++n) {
        const bool valid = x[n] - x[n] == 0;
        share[n] = rule.next_share(total[n], valid, alpha[n]);
        count[n] += valid ? 1 : 0;
        undefined[n] += count[n] < min_periods ? 1 : 0;
      }
    if (shared) std::fill_n(total + 1, width - 1, total[0]);
    return shared;
  }

 private:
  inline bool same_weights() const {
    bool same = true;
    for (int64_t n = 0; n < width; ++n)
      same &= (total[n] == total[0]) & (alpha[n] == alpha[0]) & (count[n] >= min_periods);
    return same;
  }
};

}  // namespace on_cpu
#endif

}  // namespace commodity
