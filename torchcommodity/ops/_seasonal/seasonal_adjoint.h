// Gradient of seasonal_decompose with respect to the prices, for a SIMD vector of columns (Number).
//
// With d_t = price - trend (or price / trend), m_t the mean of d over the phase of t and c_t the mean of the phase
// means: seasonal = m - c (or m / c), residual = d - seasonal (or d / seasonal). forward() recomputes these in one pass
// over time and stores what the gradient needs of each row. backward() goes through the rows in reverse: the gradients
// of residual and seasonal give those of d, m and c; those of m are accumulated by phase, and those of c and of the
// trend are summed over the rows whose windows contain t (sum_ahead). Two-sided, a phase has one mean, so its gradient
// is summed first.
#pragma once
#include "portable.h"

namespace commodity {

// Stored of each row; NaN where undefined. kWindowWeight is the number of prices in the trend's window, twice.
enum { kTrend, kWindowWeight, kDetrended, kPhaseMean, kCenter, kCount, kRowKinds };
// Stored of each phase: running sum, number of rows, mean.
enum { kSum, kObserved, kMean, kPhaseKinds };

// Memory provides price(t, to), gradient(part, t, to), write(t, dx) and storage: row(kind, t) and phase(kind, k), zero
// at first.
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
    if (!causal) sum_phase_gradients();
    backward();
  }

 private:
  Number sum = {}, count = {}, previous_sum = {}, previous_count = {}, observed_phases = {}, center_sum = {};

  COMMODITY_INLINE int64_t lead() const { return causal ? 0 : period / 2; }
  COMMODITY_INLINE int64_t max(int64_t a, int64_t b) const { return a > b ? a : b; }
  COMMODITY_INLINE int64_t min(int64_t a, int64_t b) const { return a < b ? a : b; }

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

  // The sum over the last `period` rows, recomputed once per period so that rounding errors do not accumulate.
  COMMODITY_INLINE void slide_window(int64_t t) {
    previous_sum = sum, previous_count = count;
    if (t % period == 0) {
      sum = count = Number{};
      for (int64_t u = max(0, t - period + 1); u < t; ++u) add(u, 1);
    } else if (t >= period) {
      add(t - period, -1);
    }
    add(t, 1);
  }

  COMMODITY_INLINE void forward() {
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t last = t + lead();
      for (int64_t u = t > 0 ? last : 0; u <= min(last, steps - 1); ++u) slide_window(u);
      detrend(t, last >= period - period % 2 && last < steps);
      update_phase(t, t % period);
      if (causal) store_row(t, t % period);
    }
    for (int64_t k = 0; !causal && k < period; ++k) finish_phase(k);
    for (int64_t t = 0; !causal && t < steps; ++t) store_row(t, t % period);
  }

  // An even period weighs the two ends by half: the sum at t plus the sum at t - 1.
  COMMODITY_INLINE void detrend(int64_t t, bool in_range) {
    const bool even = period % 2 == 0;
    Number price;
    read(t, price);
    const Number weight = count + (even ? previous_count : count);
    const Number trend =
        weight >= (in_range ? double(period) : INFINITY) ? (sum + (even ? previous_sum : sum)) / weight : NAN;
    memory.row(kTrend, t) = trend, memory.row(kWindowWeight, t) = weight;
    memory.row(kDetrended, t) = multiplicative ? price / trend : price - trend;
  }

  COMMODITY_INLINE void update_phase(int64_t t, int64_t k) {
    const Number detrended = memory.row(kDetrended, t);
    memory.phase(kSum, k) += detrended == detrended ? detrended : 0.0;
    memory.phase(kObserved, k) += detrended == detrended ? 1.0 : 0.0;
    if (!causal) return;
    if (k == 0) {
      center_sum = Number{};
      for (int64_t i = 0; i < period; ++i) center_sum += memory.phase(kMean, i) / double(period);
    }
    observed_phases += ((detrended == detrended) & (memory.phase(kObserved, k) == 1)) ? 1.0 : 0.0;
    const Number observed = memory.phase(kObserved, k), mean = observed > 0 ? memory.phase(kSum, k) / observed : 0.0;
    center_sum += (mean - memory.phase(kMean, k)) / double(period);
    memory.phase(kMean, k) = mean;
  }

  COMMODITY_INLINE void finish_phase(int64_t k) {
    const Number observed = memory.phase(kObserved, k), mean = observed > 0 ? memory.phase(kSum, k) / observed : 0.0;
    observed_phases += observed > 0 ? 1.0 : 0.0;
    center_sum += mean / double(period);
    memory.phase(kMean, k) = mean;
  }

  COMMODITY_INLINE void store_row(int64_t t, int64_t k) {
    const Number observed = memory.phase(kObserved, k);
    memory.row(kPhaseMean, t) = memory.phase(kMean, k);
    memory.row(kCenter, t) = observed_phases >= double(period) ? center_sum : NAN;
    memory.row(kCount, t) = observed > 1 ? observed : 1.0;
  }

  COMMODITY_INLINE void gradient(int part, int64_t t, Number& g) const {
    memory.gradient(part, t, g);
    g = g - g == 0 ? g : 0.0;
  }

  // Gradients of residual and seasonal at row t with respect to d_t, m_t and minus c_t.
  COMMODITY_INLINE void row_gradients(int64_t t, Number& d_detrended, Number& d_mean, Number& d_center) const {
    const Number detrended = memory.row(kDetrended, t), mean = memory.row(kPhaseMean, t),
                 center = memory.row(kCenter, t);
    const Number seasonal = multiplicative ? mean / center : mean - center;
    Number d_residual, d_seasonal;
    gradient(2, t, d_residual), gradient(1, t, d_seasonal);
    d_residual = ((detrended == detrended) & (seasonal == seasonal)) ? d_residual : 0.0;
    d_detrended = d_residual;
    if (multiplicative) d_detrended = d_residual != 0 ? d_residual / seasonal : 0.0;
    d_seasonal -= d_detrended * (multiplicative ? (detrended == detrended ? detrended : 0.0) / seasonal : Number{} + 1);
    d_mean = seasonal == seasonal ? (multiplicative ? d_seasonal / center : d_seasonal) : 0.0;
    d_center = d_mean;
    if (multiplicative) d_center = seasonal == seasonal ? d_mean * seasonal : 0.0;
  }

  // Two-sided: all rows of a phase share one mean, and all rows one center.
  COMMODITY_INLINE void sum_phase_gradients() {
    Number d_center_sum = {};
    for (int64_t t = 0; t < steps; ++t) {
      Number d_detrended, d_mean, d_center;
      row_gradients(t, d_detrended, d_mean, d_center);
      memory.phase(kSum, t % period) += d_mean, d_center_sum += d_center;
    }
    for (int64_t k = 0; k < period; ++k) {
      const Number observed = memory.phase(kObserved, k);
      memory.phase(kSum, k) = (memory.phase(kSum, k) - d_center_sum / double(period)) / (observed > 1 ? observed : 1.0);
    }
  }

  // Sum of a stored kind over row t and the period - 1 rows after it.
  COMMODITY_INLINE void sum_ahead(int kind, int64_t t, Number& sum) const {
    if ((steps - 1 - t) % period == 0) {
      sum = Number{};
      for (int64_t u = min(steps, t + period) - 1; u > t; --u)
        if (u >= 0) sum += memory.row(kind, u);
    } else if (t + period < steps) {
      sum -= memory.row(kind, t + period);
    }
    if (t >= 0) sum += memory.row(kind, t);
  }

  COMMODITY_INLINE void backward() {
    Number d_centers = {}, window = {}, next_window = {};
    for (int64_t t = steps - 1; t >= -lead(); --t) {
      if (t >= 0) row_backward(t, d_centers);
      next_window = window;
      sum_ahead(kWindowWeight, t, window);
      const int64_t row = t + lead();
      if (row >= steps) continue;
      Number price;
      read(row, price);
      const Number dx = memory.row(kTrend, row) + window + (period % 2 ? window : next_window);
      memory.write(row, price == price ? dx : 0.0);
    }
  }

  // Overwrites kWindowWeight by the gradient of the weighted sum in the trend of row t, kTrend by that of price t
  // itself.
  COMMODITY_INLINE void row_backward(int64_t t, Number& d_centers) {
    Number d_detrended, d_mean, d_trend;
    const Number detrended = memory.row(kDetrended, t), trend = memory.row(kTrend, t);
    Number d_center;
    row_gradients(t, d_detrended, d_mean, d_center);
    Number& d_phase = memory.phase(kSum, t % period);
    if (causal) {
      memory.row(kCenter, t) = d_center;
      sum_ahead(kCenter, t, d_centers);
      d_phase += (d_mean - d_centers / double(period)) / memory.row(kCount, t);
    }
    Number d_price = detrended == detrended ? d_detrended + d_phase : 0.0;
    if (multiplicative) d_price = detrended == detrended ? d_price / trend : 0.0;
    gradient(0, t, d_trend);
    d_trend -= multiplicative ? d_price * (detrended == detrended ? detrended : 0.0) : d_price;
    memory.row(kWindowWeight, t) = trend == trend ? d_trend / memory.row(kWindowWeight, t) : 0.0;
    memory.row(kTrend, t) = d_price;
  }
};

}  // namespace commodity
