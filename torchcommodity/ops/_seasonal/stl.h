// STL, seasonal-trend decomposition by LOESS (Cleveland et al., 1990), of kLanes series at once, in double.
//
// One inner pass, with C the period and all smoothers from loess.h:
//   1. input = y - trend; smooth the rows of each phase (t modulo C), extended by one row at both ends -> cycles
//   2. low-pass the cycles: moving averages of C, C and 3 rows, then LOESS
//   3. seasonal = cycles - low pass
//   4. input = y - seasonal; smooth it -> trend
// With the weights fixed every step is linear; inner_pass_transpose applies the transposed steps in reverse order,
// which is the gradient. An outer pass recomputes the robustness weights from the residuals.
#pragma once
#include <array>

#include "loess.h"

namespace commodity {

// The settings and windows, shared by all series. If T is not a multiple of the period, the first phases are one row
// longer.
struct Plan {
  int64_t steps, period, inner, outer;
  bool weighted;
  Loess long_phase, short_phase, trend, low_pass;
  Plan(int64_t steps_, int64_t period_, const std::array<Smoother, 3>& smoothers, int64_t inner_, int64_t outer_,
       bool weighted_)
      : steps(steps_),
        period(period_),
        inner(inner_),
        outer(outer_),
        weighted(weighted_),
        long_phase(steps / period + 1, smoothers[0], true, weighted),
        short_phase(steps / period, smoothers[0], true, weighted),
        trend(steps, smoothers[1], false, weighted),
        low_pass(steps, smoothers[2], false, false) {}
  const Loess& phase(int64_t j) const { return j < steps % period ? long_phase : short_phase; }
};

// Moving averages: to[t] is the mean of x[t .. t + rows - 1]; `to` may be x.
inline void moving_average(const double* x, int64_t steps, int64_t rows, double* to) {
  double sum[kLanes] = {};
  for (int64_t t = 0; t < rows - 1; ++t)
    for (int64_t n = 0; n < kLanes; ++n) sum[n] += x[t * kLanes + n];
  for (int64_t t = rows - 1; t < steps; ++t, x += kLanes, to += kLanes)
    for (int64_t n = 0; n < kLanes; ++n) {
      sum[n] += x[(rows - 1) * kLanes + n];
      const double oldest = x[n];
      to[n] = sum[n] / double(rows);
      sum[n] -= oldest;
    }
}

// The transpose: the gradient of `steps` rows from that of their averages; `to` must not be `grad`.
inline void moving_average_transpose(const double* grad, int64_t steps, int64_t rows, double* to) {
  double sum[kLanes] = {};
  const int64_t averages = steps - rows + 1;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t n = 0; n < kLanes; ++n) {
      sum[n] += t < averages ? grad[t * kLanes + n] : 0;
      to[t * kLanes + n] = sum[n] / double(rows);
      sum[n] -= t >= rows - 1 ? grad[(t - rows + 1) * kLanes + n] : 0;
    }
}

// The state of kLanes series, interleaved: row t of series n is at t * kLanes + n.
struct StlBlock {
  const Plan& plan;
  int64_t size;
  std::vector<double> y, weights, trend, seasonal, input, weighted_input, cycles, work;
  std::unique_ptr<bool[]> present;
  double level[kLanes] = {}, count[kLanes] = {};
  std::vector<FitFactors> phase_factors;
  std::vector<FitFactors> trend_factors;
  Scratch scratch;
  bool missing = false;

  explicit StlBlock(const Plan& plan_)
      : plan(plan_),
        size(plan.steps * kLanes),
        y(size),
        weights(size, 1.0),
        trend(size),
        seasonal(size),
        input(size),
        weighted_input(size),
        cycles(size + 2 * plan.period * kLanes),
        work(cycles.size()),
        present(std::make_unique<bool[]>(size)) {
    std::fill_n(present.get(), size, true);
  }

  // Subtracts the mean of each series, which preserves precision and does not change the components.
  template <typename scalar_t>
  void read(const scalar_t* x, int64_t stride, int64_t width) {
    for (int64_t t = 0; t < plan.steps; ++t)
      for (int64_t n = 0; n < width; ++n) {
        const bool finite = std::isfinite(x[t * stride + n]);
        present[t * kLanes + n] = finite;
        level[n] += finite ? x[t * stride + n] : 0;
        count[n] += finite;
      }
    for (int64_t n = 0; n < width; ++n) level[n] /= std::max(count[n], 1.0);
    for (int64_t t = 0; t < plan.steps; ++t)
      for (int64_t n = 0; n < width; ++n) {
        const bool finite = present[t * kLanes + n];
        y[t * kLanes + n] = finite ? x[t * stride + n] - level[n] : 0;
        weights[t * kLanes + n] = finite;
        missing |= !finite;
      }
  }

  void update_fit_factors() {
    phase_factors.clear(), trend_factors.clear();
    for (int64_t j = 0; j < plan.period; ++j)
      phase_factors.push_back(
          fit_factors(plan.phase(j), &weights[j * kLanes], &present[j * kLanes], plan.period * kLanes));
    trend_factors.push_back(fit_factors(plan.trend, weights.data(), present.get(), kLanes));
  }

  void weight_input(bool use_weights) {
    for (int64_t i = 0; i < size && use_weights; ++i) weighted_input[i] = weights[i] * input[i];
  }

  void inner_pass(bool use_weights) {
    const int64_t period = plan.period, period_stride = period * kLanes;
    for (int64_t i = 0; i < size; ++i) input[i] = y[i] - trend[i];
    weight_input(use_weights);
    for (int64_t j = 0; j < period; ++j) {
      const int64_t offset = j * kLanes;
      use_weights ? smooth(plan.phase(j), phase_factors[j], &input[offset], &weighted_input[offset], period_stride,
                           &cycles[offset], period_stride, scratch)
                  : smooth(plan.phase(j), &input[offset], period_stride, &cycles[offset], period_stride, scratch);
    }
    moving_average(cycles.data(), plan.steps + 2 * period, period, work.data());
    moving_average(work.data(), plan.steps + period + 1, period, work.data());
    moving_average(work.data(), plan.steps + 2, 3, work.data());
    smooth(plan.low_pass, work.data(), kLanes, input.data(), kLanes, scratch);
    for (int64_t i = 0; i < size; ++i) {
      seasonal[i] = cycles[period_stride + i] - input[i];
      input[i] = y[i] - seasonal[i];
    }
    weight_input(use_weights);
    use_weights ? smooth(plan.trend, trend_factors[0], input.data(), weighted_input.data(), kLanes, trend.data(),
                         kLanes, scratch)
                : smooth(plan.trend, input.data(), kLanes, trend.data(), kLanes, scratch);
  }

  // The transposed steps of inner_pass in reverse order. `trend` and `seasonal` hold the incoming gradients; the
  // gradient of y is added to `y`, and `trend` receives the gradient of the trend of the previous pass.
  void inner_pass_transpose(bool use_weights) {
    const int64_t period = plan.period, period_stride = period * kLanes;
    const auto clear = [](std::vector<double>& x) { std::fill(x.begin(), x.end(), 0.0); };
    const auto add_input_gradient = [&] {
      for (int64_t i = 0; i < size && use_weights; ++i) input[i] += weights[i] * weighted_input[i];
      for (int64_t i = 0; i < size; ++i) y[i] += input[i];
      clear(weighted_input);
    };
    clear(input);
    use_weights ? smooth_transpose(plan.trend, trend_factors[0], trend.data(), kLanes, input.data(),
                                   weighted_input.data(), kLanes, scratch)
                : smooth_transpose(plan.trend, trend.data(), kLanes, input.data(), kLanes, scratch);
    add_input_gradient();
    for (int64_t i = 0; i < size; ++i) seasonal[i] -= input[i];
    clear(work), clear(cycles);
    smooth_transpose(plan.low_pass, seasonal.data(), kLanes, work.data(), kLanes, scratch);
    moving_average_transpose(work.data(), plan.steps + 2, 3, cycles.data());
    moving_average_transpose(cycles.data(), plan.steps + period + 1, period, work.data());
    moving_average_transpose(work.data(), plan.steps + 2 * period, period, cycles.data());
    for (double& g : cycles) g = -g;
    for (int64_t i = 0; i < size; ++i) cycles[period_stride + i] += seasonal[i];
    clear(input), clear(seasonal);
    for (int64_t j = 0; j < period; ++j) {
      const int64_t offset = j * kLanes;
      use_weights
          ? smooth_transpose(plan.phase(j), phase_factors[j], &cycles[offset], period_stride, &input[offset],
                             &weighted_input[offset], period_stride, scratch)
          : smooth_transpose(plan.phase(j), &cycles[offset], period_stride, &input[offset], period_stride, scratch);
    }
    add_input_gradient();
    for (int64_t i = 0; i < size; ++i) trend[i] = -input[i];
  }

  // Bisquare weights (1 - (r / 6 median r)^2)^2, r = |residual|.
  void update_robustness_weights() {
    std::vector<double> sizes;
    for (int64_t n = 0; n < kLanes; ++n) {
      sizes.clear();
      for (int64_t i = n; i < size; i += kLanes) {
        input[i] = std::abs(y[i] - trend[i] - seasonal[i]);
        if (present[i]) sizes.push_back(input[i]);
      }
      const double scale = 6 * median(sizes);
      for (int64_t i = n; i < size; i += kLanes) {
        const double u = scale > 0 ? input[i] / scale : 0, complement = 1 - u * u;
        weights[i] = !present[i] ? 0 : u <= 0.001 ? 1 : u <= 0.999 ? complement * complement : 0;
      }
    }
  }

  static double median(std::vector<double>& values) {
    if (values.empty()) return 0;
    const auto upper = values.begin() + int64_t(values.size() / 2);
    std::nth_element(values.begin(), upper, values.end());
    return values.size() % 2 ? *upper : (*upper + *std::max_element(values.begin(), upper)) / 2;
  }

  void run() {
    for (int64_t outer_pass = 0; outer_pass <= plan.outer; ++outer_pass) {
      if (outer_pass) update_robustness_weights();
      const bool use_weights = outer_pass || missing;
      if (use_weights) update_fit_factors();
      for (int64_t pass = 0; pass < plan.inner; ++pass) inner_pass(use_weights);
    }
  }

  template <typename scalar_t>
  void write(scalar_t* const (&to)[4], int64_t offset, int64_t stride, int64_t width) const {
    constexpr scalar_t nan = std::numeric_limits<scalar_t>::quiet_NaN();
    for (int64_t t = 0; t < plan.steps; ++t, offset += stride)
      for (int64_t n = 0; n < width; ++n) {
        const int64_t i = t * kLanes + n;
        to[0][offset + n] = count[n] > 0 ? scalar_t(trend[i] + level[n]) : nan;
        to[1][offset + n] = count[n] > 0 ? scalar_t(seasonal[i]) : nan;
        to[2][offset + n] = present[i] ? scalar_t(y[i] - trend[i] - seasonal[i]) : nan;
        to[3][offset + n] = scalar_t(weights[i]);
      }
  }
};

// Calls body(offset, width) for each block of up to kLanes series of every panel, in parallel.
template <typename Body>
void for_each_lanes(const Panels& panels, const Body& body) {
  const int64_t blocks = (panels.assets + kLanes - 1) / kLanes;
  const int64_t grain = std::max<int64_t>(1, kGrain / (panels.steps * kLanes));
  parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kLanes;
      body(i / blocks * panels.size() + first, std::min(kLanes, panels.assets - first));
    }
  });
}

template <typename scalar_t>
bool all_finite(const Tensor& x) {
  const scalar_t* from = x.const_data_ptr<scalar_t>();
  return std::all_of(from, from + x.numel(), [](scalar_t value) { return std::isfinite(value); });
}

// The smoothers of the phases, the trend and the low pass.
inline std::array<Smoother, 3> make_smoothers(const std::vector<int64_t>& lengths, const std::vector<int64_t>& degrees,
                                              const std::vector<int64_t>& jumps) {
  STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3,
                  "stl: lengths, degrees and jumps must have 3 elements");
  std::array<Smoother, 3> smoothers;
  for (int i = 0; i < 3; ++i) smoothers[i] = {lengths[i], degrees[i], jumps[i]};
  return smoothers;
}

}  // namespace commodity
