// One row of the parabolic stop and reverse, for one series.
//
// A falling position is a rising one in the mirror: there prices are negative, so `near`, the side that can hit the
// stop, is low or -high, and `far`, the side of the extreme, is high or -low. One rule serves both.
#pragma once
#include "portable.h"

namespace commodity {

template <typename scalar_t>
struct SarSettings {
  scalar_t start, offset, initial[2], step[2], most[2];  // [0] rising, [1] falling
};

template <typename scalar_t>
SarSettings<scalar_t> sar_settings(const double* x) {
  const auto at = [x](int i) { return static_cast<scalar_t>(x[i]); };
  return {at(0), at(1), {at(2), at(3)}, {at(4), at(5)}, {at(6), at(7)}};
}

// stop_t = keep stop_{t-1} + gain price, of the row `source` (-1: none), a high or a low: what the gradient needs.
template <typename scalar_t>
struct SarRow {
  scalar_t stop, keep, gain;
  int64_t source;
  bool of_high;
  int64_t side;  // 1 rising, -1 falling, 0 not yet
};

template <typename scalar_t>
struct Sar {
  scalar_t high, low, level, extreme, factor, keep, gain;  // the last row there was; level and extreme in the mirror
  int64_t row = -1, extreme_row, source, side = 0;
  bool source_near;

  COMMODITY_INLINE void begin(scalar_t h, scalar_t l, int64_t t, const SarSettings<scalar_t>& settings) {
    const bool falls = low - l > 0 && h - high < low - l;
    side = settings.start == 0 ? (falls ? -1 : 1) : (settings.start > 0 ? 1 : -1);
    level = settings.start == 0 ? (side > 0 ? low : -high) : settings.start;  // negative: falling, as in the mirror
    keep = 0, gain = settings.start == 0 ? 1 : 0, source = settings.start == 0 ? row : -1, source_near = true;
    extreme = side > 0 ? h : -l, extreme_row = t, factor = settings.initial[side < 0];
    high = h, low = l, row = t;  // the first step knows no other row, as TA-Lib has it
  }

  COMMODITY_INLINE bool of_high() const { return source_near == (side < 0); }

  COMMODITY_INLINE void bound(scalar_t& value, scalar_t near, int64_t at) {
    if (value > near) value = near, keep = 0, gain = 1, source = at, source_near = true;
  }

  COMMODITY_INLINE SarRow<scalar_t> next(scalar_t h, scalar_t l, int64_t t, const SarSettings<scalar_t>& settings) {
    const bool missing = !(h - h == 0 && l - l == 0);
    if (missing || row < 0) {
      if (!missing) high = h, low = l, row = t;
      if (side == 0) return {scalar_t(NAN), 0, 0, -1, false, 0};
      const SarRow<scalar_t> same = {side * level, keep, gain, source, of_high(), side};
      keep = 1, gain = 0, source = -1;
      return same;
    }
    if (side == 0) begin(h, l, t, settings);
    scalar_t near = side > 0 ? l : -h;
    if (near <= level) {
      side = -side, near = side > 0 ? l : -h;
      level = -extreme, keep = 0, gain = 1, source = extreme_row, source_near = true;
      bound(level, side > 0 ? low : -high, row), bound(level, near, t);
      const scalar_t away = side > 0 ? 1 - settings.offset : 1 + settings.offset;
      level *= away, gain *= away;
      factor = settings.initial[side < 0], extreme = side > 0 ? h : -l, extreme_row = t;
    } else if ((side > 0 ? h : -l) > extreme) {
      extreme = side > 0 ? h : -l, extreme_row = t;
      const scalar_t grown = factor + settings.step[side < 0], most = settings.most[side < 0];
      factor = grown < most ? grown : most;
    }
    const SarRow<scalar_t> now = {side * level, keep, gain, source, of_high(), side};
    level += factor * (extreme - level), keep = 1 - factor, gain = factor, source = extreme_row, source_near = false;
    bound(level, side > 0 ? low : -high, row), bound(level, near, t);
    high = h, low = l, row = t;
    return now;
  }
};

}  // namespace commodity
