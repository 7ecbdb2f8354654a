// One row of the parabolic stop and reverse (SAR) and its transpose, for one series (double) or for some side by side
// (a vector of doubles, for the CPU). Without branches, which random prices would mispredict.
//
// A short position is treated as a long one with negated prices. In these terms, called mirrored, the stop is always
// below the price: `near`, the price that can hit the stop, is low or -high; `far`, that can be a new extreme, is high
// or -low.
#pragma once
#include "portable.h"

namespace commodity {

struct SarSettings {
  double start, offset, initial[2], step[2], maximum[2];  // [0] long, [1] short
};

template <typename Number>
struct Mirrored {
  Number near, far;
  template <typename Mask>
  COMMODITY_INLINE Mirrored(const Mask& is_long, const Number& high, const Number& low)
      : near(is_long ? low : -high), far(is_long ? high : -low) {}
};

// What happens in a row, and the values after it. The fields after `moves` are valid only where it `moves`: to mask
// each of them is slow, since clang packs and unpacks a mask that combines comparisons.
template <typename Number>
struct SarRow {
  using Mask = decltype(Number() < Number());
  Mask present, moves, enters, enters_long, reverses, has_new_extreme, is_long;
  Mask reversed_at_before, reversed_at_own, bound_before, bound_own;  // by the price of the previous or of this row
  Number side, scale, level, extreme, factor, next_level;
};

constexpr int64_t kSarFields = 6, kSarPrefetchRows = 16;

template <typename Number>
struct Sar {
  Number high, low;       // of the last row that is not missing; NaN before
  Number level, extreme;  // the stop of the next row and the extreme price, mirrored
  Number factor, side;    // side: 1 long, -1 short, 0 none yet

  // Calls visit(k, field) for every field.
  template <typename Visit>
  COMMODITY_INLINE void for_each_field(const Visit& visit) {
    visit(0, high), visit(1, low), visit(2, level), visit(3, extreme), visit(4, factor), visit(5, side);
  }

  COMMODITY_INLINE static Sar none() {
    const Number zero = Number(), nan = zero + NAN;
    return {nan, nan, zero, zero, zero, zero};
  }

  COMMODITY_INLINE SarRow<Number> row(const Number& h, const Number& l, const SarSettings& x) const {
    SarRow<Number> y;
    const Number zero = Number();
    y.present = (h - h == 0) & (l - l == 0);
    y.moves = y.present & (high == high);
    y.enters = side == 0;
    const auto automatic = zero + x.start == 0;  // a number would be a branch
    const Number fall = low - l;
    y.enters_long = automatic ? !((fall > 0) & (h - high < fall)) : zero < x.start;
    const Number old_side = y.enters ? (y.enters_long ? zero + 1 : zero - 1) : side;
    const auto was_long = old_side > 0;
    const Mirrored<Number> own(was_long, h, l), last(was_long, high, low);
    const Number start = automatic ? last.near : zero + x.start;  // a negative start is mirrored already
    const Number stop = y.enters ? start : level, extreme_before = y.enters ? own.far : extreme;
    // as in TA-Lib, the first step is bounded by its own row only
    const Number near_before = y.enters ? own.near : last.near, far_before = y.enters ? own.far : last.far;

    y.reverses = own.near <= stop;
    y.reversed_at_before = far_before > extreme_before;
    Number highest = y.reversed_at_before ? far_before : extreme_before;
    y.reversed_at_own = own.far > highest;
    highest = y.reversed_at_own ? own.far : highest;
    y.side = y.reverses ? -old_side : old_side;
    y.is_long = y.side > 0;
    y.scale = y.is_long ? zero + (1 - x.offset) : zero + (1 + x.offset);
    y.level = y.reverses ? -highest * y.scale : stop;

    const auto exceeds = own.far > extreme_before;
    y.has_new_extreme = y.reverses | exceeds;
    y.extreme = y.reverses ? -own.near : exceeds ? own.far : extreme_before;
    const Number initial = y.is_long ? zero + x.initial[0] : zero + x.initial[1];
    const Number maximum = y.is_long ? zero + x.maximum[0] : zero + x.maximum[1];
    const Number current = y.enters ? initial : factor;
    const Number increased = current + (y.is_long ? zero + x.step[0] : zero + x.step[1]);
    const Number accelerated = increased < maximum ? increased : maximum;
    y.factor = y.reverses ? initial : exceeds ? accelerated : current;

    const Number bound = y.reverses ? -far_before : near_before, own_bound = y.reverses ? -own.far : own.near;
    y.next_level = y.level + y.factor * (y.extreme - y.level);
    y.bound_before = y.next_level > bound;
    y.next_level = y.bound_before ? bound : y.next_level;
    y.bound_own = y.next_level > own_bound;
    y.next_level = y.bound_own ? own_bound : y.next_level;
    return y;
  }

  // Advances by a row; gives the stop of this row, NaN without a position.
  COMMODITY_INLINE void next(const Number& h, const Number& l, const SarSettings& x, Number& stop) {
    const SarRow<Number> y = row(h, l, x);
    stop = y.moves ? y.level : level;
    side = y.moves ? y.side : side, level = y.moves ? y.next_level : level;
    extreme = y.moves ? y.extreme : extreme, factor = y.moves ? y.factor : factor;
    high = y.present ? h : high, low = y.present ? l : low;
    stop = side == 0 ? Number() + NAN : side * stop;
  }
};

// Tangent of the state after a row, for tangents of the prices: the rules of SarAdjoint in the order of time.
template <typename Number>
struct SarTangent {
  Number level, extreme, high, low;  // high, low: of the last row that is not missing

  // Goes on by one row, given the state before it; returns the tangent of its stop.
  COMMODITY_INLINE Number next(const Sar<Number>& before, const Number& h, const Number& l, const Number& d_high,
                               const Number& d_low, const SarSettings& x) {
    const SarRow<Number> y = before.row(h, l, x);
    const Number zero = Number();
    const auto was_long = y.reverses ? !y.is_long : y.is_long;
    const Mirrored<Number> own(was_long, d_high, d_low), last(was_long, high, low);
    const Number stop = y.enters ? (zero + x.start == 0 ? last.near : zero) : level;
    const Number extreme_before = y.enters ? own.far : extreme;
    const Number near_before = y.enters ? own.near : last.near, far_before = y.enters ? own.far : last.far;
    const Number highest = y.reversed_at_own ? own.far : y.reversed_at_before ? far_before : extreme_before;
    const Number d_level = y.reverses ? -highest * y.scale : stop;
    const Number d_extreme = y.reverses ? -own.near : y.has_new_extreme ? own.far : extreme_before;
    Number d_next = d_level + y.factor * (d_extreme - d_level);
    d_next = y.bound_before ? (y.reverses ? -far_before : near_before) : d_next;
    d_next = y.bound_own ? (y.reverses ? -own.far : own.near) : d_next;

    const Number d_stop = y.moves ? y.side * d_level : before.side * level;
    level = y.moves ? d_next : level, extreme = y.moves ? d_extreme : extreme;
    high = y.present ? d_high : high, low = y.present ? d_low : low;
    return d_stop;
  }
};

// Gradient of the state after a row: of the level, the extreme, and the last prices.
template <typename Number>
struct SarAdjoint {
  Number level, extreme, high, low;

  // Goes back by one row, given the state before it and the gradient of its stop; returns those of its prices.
  COMMODITY_INLINE void previous(const Sar<Number>& before, const Number& h, const Number& l, const Number& grad,
                                 const SarSettings& x, Number& d_high, Number& d_low) {
    const SarRow<Number> y = before.row(h, l, x);
    const Number zero = Number();
    const Number d_bound = (y.bound_before & !y.bound_own) ? level : zero, d_own_bound = y.bound_own ? level : zero;
    const Number d_next = y.bound_before | y.bound_own ? zero : level;
    const Number d_level = (1 - y.factor) * d_next + y.side * grad, d_extreme = extreme + y.factor * d_next;

    // the level after a reversal is the lowest of -extreme and two bounds
    const Number d_lowest = y.reverses ? d_level * y.scale : zero;
    const Number own_near = d_own_bound + (y.reversed_at_own ? d_lowest : zero);
    const auto at_before = y.reversed_at_before & !y.reversed_at_own;
    const Number near_before = d_bound + (at_before ? d_lowest : zero);
    const Number own_far = y.has_new_extreme ? d_extreme : zero;
    Number extreme_before = y.reverses          ? (y.reversed_at_own | y.reversed_at_before ? zero : -d_lowest)
                            : y.has_new_extreme ? zero
                                                : d_extreme;
    const Number level_before = y.reverses ? zero : d_level;
    const Number from_own_near = own_near + (y.enters ? near_before : zero), from_near = y.enters ? zero : near_before;

    d_high = high + (y.is_long ? own_far : -from_own_near), d_low = low + (y.is_long ? from_own_near : -own_far);
    const Number d_entry = (y.enters & (zero + x.start == 0)) ? level_before : zero;
    const Number d_first = y.enters ? extreme_before : zero;
    d_high += y.enters_long ? d_first : zero, d_low -= y.enters_long ? zero : d_first;
    d_high = y.moves ? d_high : y.present ? high : zero, d_low = y.moves ? d_low : y.present ? low : zero;

    high = y.moves ? (y.is_long ? zero : -from_near) - (y.enters_long ? zero : d_entry) : y.present ? zero : high;
    low = y.moves ? (y.is_long ? from_near : zero) + (y.enters_long ? d_entry : zero) : y.present ? zero : low;
    level = y.moves ? (y.enters ? zero : level_before) : level + before.side * grad;
    extreme = y.moves ? (y.enters ? zero : extreme_before) : extreme;
  }
};

}  // namespace commodity
