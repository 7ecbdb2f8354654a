// The gradient of seasonal_decompose in its prices, for one column, or a vector of them: forwards in time for what the
// parts were made of, backwards for the transpose.
#pragma once
#include "portable.h"

namespace commodity {

enum { kTrend, kWeight, kRest, kMean, kCenter, kCount, kRowKinds };  // of each row; NaN where there is none
enum { kSum, kSeen, kAverage, kPhaseKinds };                         // of each phase

// `Memory` reads price(t, to), gradient(part, t, to), writes write(t, dx), and keeps row(kind, t), phase(kind, k),
// which are zero to begin with.
template <typename Number, typename Memory>
struct SeasonalAdjoint {
  Memory memory;
  int64_t period, steps;
  bool multiplicative, causal;

  COMMODITY_INLINE SeasonalAdjoint(const Memory& memory, int64_t period, int64_t steps, bool multiplicative,
                                   bool causal)
      : memory(memory), period(period), steps(steps), multiplicative(multiplicative), causal(causal) {}

  COMMODITY_INLINE void run() {
    forward();
    for (int64_t k = 0; k < period; ++k) memory.phase(kSum, k) = Number{};
    if (!causal) total();
    backward();
  }

 private:
  Number sum = {}, count = {}, last_sum = {}, last_count = {}, known = {}, middle = {};

  COMMODITY_INLINE int64_t ahead() const { return causal ? 0 : period / 2; }
  COMMODITY_INLINE int64_t most(int64_t a, int64_t b) const { return a > b ? a : b; }
  COMMODITY_INLINE int64_t least(int64_t a, int64_t b) const { return a < b ? a : b; }

  COMMODITY_INLINE void read(int64_t t, Number& price) const {
    memory.price(t, price);
    if (multiplicative) price = price > 0 ? price : NAN;
  }

  COMMODITY_INLINE void add(int64_t t, double sign) {
    Number price;
    read(t, price);
    sum += price == price ? sign * price : 0.0;
    count += price == price ? sign : 0.0;
  }

  // The sum over the last `period` rows, taken anew once a period, so that no error is carried along.
  COMMODITY_INLINE void slide(int64_t t) {
    last_sum = sum, last_count = count;
    if (t % period == 0) {
      sum = count = Number{};
      for (int64_t u = most(0, t - period + 1); u < t; ++u) add(u, 1);
    } else if (t >= period) {
      add(t - period, -1);
    }
    add(t, 1);
  }

  COMMODITY_INLINE void forward() {
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t last = t + ahead();
      for (int64_t u = t > 0 ? last : 0; u <= least(last, steps - 1); ++u) slide(u);
      detrend(t, last >= period - period % 2 && last < steps);
      see(t, t % period);
      if (causal) keep(t, t % period);
    }
    for (int64_t k = 0; !causal && k < period; ++k) average(k);
    for (int64_t t = 0; !causal && t < steps; ++t) keep(t, t % period);
  }

  // An even period counts each of its inner rows twice and the two ends once: the sum at t and the sum at t - 1.
  COMMODITY_INLINE void detrend(int64_t t, bool inside) {
    const bool even = period % 2 == 0;
    Number price;
    read(t, price);
    const Number weight = count + (even ? last_count : count);
    const Number trend =
        weight >= (inside ? double(period) : INFINITY) ? (sum + (even ? last_sum : sum)) / weight : NAN;
    memory.row(kTrend, t) = trend, memory.row(kWeight, t) = weight;
    memory.row(kRest, t) = multiplicative ? price / trend : price - trend;
  }

  COMMODITY_INLINE void see(int64_t t, int64_t k) {
    const Number rest = memory.row(kRest, t);
    memory.phase(kSum, k) += rest == rest ? rest : 0.0;
    memory.phase(kSeen, k) += rest == rest ? 1.0 : 0.0;
    if (!causal) return;
    if (k == 0) {
      middle = Number{};
      for (int64_t i = 0; i < period; ++i) middle += memory.phase(kAverage, i) / double(period);
    }
    known += (rest == rest) & (memory.phase(kSeen, k) == 1) ? 1.0 : 0.0;
    const Number seen = memory.phase(kSeen, k), mean = seen > 0 ? memory.phase(kSum, k) / seen : 0.0;
    middle += (mean - memory.phase(kAverage, k)) / double(period);
    memory.phase(kAverage, k) = mean;
  }

  COMMODITY_INLINE void average(int64_t k) {
    const Number seen = memory.phase(kSeen, k), mean = seen > 0 ? memory.phase(kSum, k) / seen : 0.0;
    known += seen > 0 ? 1.0 : 0.0;
    middle += mean / double(period);
    memory.phase(kAverage, k) = mean;
  }

  COMMODITY_INLINE void keep(int64_t t, int64_t k) {
    const Number seen = memory.phase(kSeen, k);
    memory.row(kMean, t) = memory.phase(kAverage, k);
    memory.row(kCenter, t) = known >= double(period) ? middle : NAN;
    memory.row(kCount, t) = seen > 1 ? seen : 1.0;
  }

  COMMODITY_INLINE void gradient(int part, int64_t t, Number& g) const {
    memory.gradient(part, t, g);
    g = g - g == 0 ? g : 0.0;
  }

  // What row t asks of its rest, of the mean of its phase and of the mean of these means.
  COMMODITY_INLINE void ask(int64_t t, Number& of_rest, Number& of_mean, Number& of_centre) const {
    const Number rest = memory.row(kRest, t), mean = memory.row(kMean, t), center = memory.row(kCenter, t);
    const Number season = multiplicative ? mean / center : mean - center;
    Number of_residual, of_season;
    gradient(2, t, of_residual), gradient(1, t, of_season);
    of_residual = (rest == rest) & (season == season) ? of_residual : 0.0;
    of_rest = of_residual;
    if (multiplicative) of_rest = of_residual != 0 ? of_residual / season : 0.0;
    of_season -= of_rest * (multiplicative ? (rest == rest ? rest : 0.0) / season : Number{} + 1);
    of_mean = season == season ? (multiplicative ? of_season / center : of_season) : 0.0;
    of_centre = of_mean;
    if (multiplicative) of_centre = season == season ? of_mean * season : 0.0;
  }

  // Two-sided: every row of a phase has one mean, and all have one mean of means.
  COMMODITY_INLINE void total() {
    Number all = {};
    for (int64_t t = 0; t < steps; ++t) {
      Number of_rest, of_mean, of_centre;
      ask(t, of_rest, of_mean, of_centre);
      memory.phase(kSum, t % period) += of_mean, all += of_centre;
    }
    for (int64_t k = 0; k < period; ++k) {
      const Number seen = memory.phase(kSeen, k);
      memory.phase(kSum, k) = (memory.phase(kSum, k) - all / double(period)) / (seen > 1 ? seen : 1.0);
    }
  }

  // The sum of a kind over row t and the period - 1 rows after it.
  COMMODITY_INLINE void gather(int kind, int64_t t, Number& sum) const {
    if ((steps - 1 - t) % period == 0) {
      sum = Number{};
      for (int64_t u = least(steps, t + period) - 1; u > t; --u)
        if (u >= 0) sum += memory.row(kind, u);
    } else if (t + period < steps) {
      sum -= memory.row(kind, t + period);
    }
    if (t >= 0) sum += memory.row(kind, t);
  }

  COMMODITY_INLINE void backward() {
    Number of_centres = {}, now = {}, after = {};
    for (int64_t t = steps - 1; t >= -ahead(); --t) {
      if (t >= 0) pull(t, of_centres);
      after = now;
      gather(kWeight, t, now);
      const int64_t row = t + ahead();
      if (row >= steps) continue;
      Number price;
      read(row, price);
      const Number asked = memory.row(kTrend, row) + now + (period % 2 ? now : after);
      memory.write(row, price == price ? asked : 0.0);
    }
  }

  // kWeight becomes what row t asks of each unit of weight in its average, kTrend what it asks of its own price.
  COMMODITY_INLINE void pull(int64_t t, Number& of_centres) {
    Number of_rest, of_mean, of_trend;
    const Number rest = memory.row(kRest, t), trend = memory.row(kTrend, t);
    Number of_centre;
    ask(t, of_rest, of_mean, of_centre);
    Number& of_phase = memory.phase(kSum, t % period);
    if (causal) {
      memory.row(kCenter, t) = of_centre;
      gather(kCenter, t, of_centres);
      of_phase += (of_mean - of_centres / double(period)) / memory.row(kCount, t);
    }
    Number own = rest == rest ? of_rest + of_phase : 0.0;
    if (multiplicative) own = rest == rest ? own / trend : 0.0;
    gradient(0, t, of_trend);
    of_trend -= multiplicative ? own * (rest == rest ? rest : 0.0) : own;
    memory.row(kWeight, t) = trend == trend ? of_trend / memory.row(kWeight, t) : 0.0;
    memory.row(kTrend, t) = own;
  }
};

}  // namespace commodity
