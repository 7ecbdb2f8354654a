// One row of the parabolic stop and reverse (SAR) for one series, for the CPU and the CUDA kernel.
//
// A short position is treated as a long one with negated prices. In these terms, called mirrored, the stop is always
// below the price: `near`, the price that can hit the stop, is low or -high, and the extreme is a maximum of high or
// -low.
#pragma once
#include "portable.h"

namespace commodity {

template <typename scalar_t>
struct SarSettings {
  scalar_t start, offset, initial[2], step[2], maximum[2];  // [0] long, [1] short
};

template <typename scalar_t>
SarSettings<scalar_t> sar_settings(const double* x) {
  const auto value = [x](int i) { return static_cast<scalar_t>(x[i]); };
  return {value(0), value(1), {value(2), value(3)}, {value(4), value(5)}, {value(6), value(7)}};
}

// For the gradient: stop_t = stop_weight stop_{t-1} + price_weight price, the high or low of row `source` (-1: none).
template <typename scalar_t>
struct SarRow {
  scalar_t stop, stop_weight, price_weight;
  int64_t source;
  bool source_is_high;
  int64_t position;  // 1 long, -1 short, 0 none yet
};

template <typename scalar_t>
struct Sar {
  scalar_t high, low;                                          // of the last row that is not missing
  scalar_t level, extreme, factor, stop_weight, price_weight;  // level and extreme are mirrored
  int64_t row = -1, extreme_row, source, position = 0;
  bool source_is_near;

  COMMODITY_INLINE void enter(scalar_t h, scalar_t l, int64_t t, const SarSettings<scalar_t>& settings) {
    const bool is_short = low - l > 0 && h - high < low - l;
    position = settings.start == 0 ? (is_short ? -1 : 1) : (settings.start > 0 ? 1 : -1);
    level =
        settings.start == 0 ? (position > 0 ? low : -high) : settings.start;  // a negative start is mirrored already
    stop_weight = 0, price_weight = settings.start == 0 ? 1 : 0;
    source = settings.start == 0 ? row : -1, source_is_near = true;
    extreme = position > 0 ? h : -l, extreme_row = t, factor = settings.initial[position < 0];
    high = h, low = l, row = t;  // as in TA-Lib, the first step is bounded by its own row only
  }

  COMMODITY_INLINE bool source_is_high() const { return source_is_near == (position < 0); }

  COMMODITY_INLINE void bound(scalar_t& value, scalar_t near, int64_t near_row) {
    if (value > near) value = near, stop_weight = 0, price_weight = 1, source = near_row, source_is_near = true;
  }

  COMMODITY_INLINE SarRow<scalar_t> output() const {
    return {position * level, stop_weight, price_weight, source, source_is_high(), position};
  }

  COMMODITY_INLINE SarRow<scalar_t> next(scalar_t h, scalar_t l, int64_t t, const SarSettings<scalar_t>& settings) {
    const bool missing = !(h - h == 0 && l - l == 0);
    if (missing || row < 0) {
      if (!missing) high = h, low = l, row = t;
      if (position == 0) return {scalar_t(NAN), 0, 0, -1, false, 0};
      const SarRow<scalar_t> unchanged = output();
      stop_weight = 1, price_weight = 0, source = -1;
      return unchanged;
    }
    if (position == 0) enter(h, l, t, settings);
    scalar_t near = position > 0 ? l : -h;
    if (near <= level) {
      position = -position, near = position > 0 ? l : -h;
      level = -extreme, stop_weight = 0, price_weight = 1, source = extreme_row, source_is_near = true;
      bound(level, position > 0 ? low : -high, row), bound(level, near, t);
      const scalar_t scale = position > 0 ? 1 - settings.offset : 1 + settings.offset;
      level *= scale, price_weight *= scale;
      factor = settings.initial[position < 0], extreme = position > 0 ? h : -l, extreme_row = t;
    } else if ((position > 0 ? h : -l) > extreme) {
      extreme = position > 0 ? h : -l, extreme_row = t;
      const scalar_t increased = factor + settings.step[position < 0], maximum = settings.maximum[position < 0];
      factor = increased < maximum ? increased : maximum;
    }
    const SarRow<scalar_t> result = output();
    level += factor * (extreme - level), stop_weight = 1 - factor, price_weight = factor;
    source = extreme_row, source_is_near = false;
    bound(level, position > 0 ? low : -high, row), bound(level, near, t);
    high = h, low = l, row = t;
    return result;
  }
};

}  // namespace commodity
