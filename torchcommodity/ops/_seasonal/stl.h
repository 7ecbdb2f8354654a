// Seasonal-trend decomposition by LOESS: the inner loop over eight series, forwards and transposed, in double.
#pragma once
#include "loess.h"

namespace commodity {

// What all series share. The first phases have one row more than the others, if T is no multiple of the period.
struct Plan {
  int64_t steps, period, inner, outer;
  bool weighted;
  Loess longer, shorter, trend, low_pass;
  Plan(int64_t steps_, int64_t period_, const Smoother (&by)[3], int64_t inner_, int64_t outer_, bool weighted_)
      : steps(steps_),
        period(period_),
        inner(inner_),
        outer(outer_),
        weighted(weighted_),
        longer(steps / period + 1, by[0], true, weighted),
        shorter(steps / period, by[0], true, weighted),
        trend(steps, by[1], false, weighted),
        low_pass(steps, by[2], false, false) {}
  const Loess& phase(int64_t j) const { return j < steps % period ? longer : shorter; }
};

// Averages of `rows` rows each, of x[t .. t + rows - 1] to to[t], which may be x itself.
inline void moving(const double* x, int64_t steps, int64_t rows, double* to) {
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

// The transpose: the gradient of `steps` rows from that of their averages, which may not be the same memory.
inline void spread_moving(const double* grad, int64_t steps, int64_t rows, double* to) {
  double sum[kLanes] = {};
  const int64_t averages = steps - rows + 1;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t n = 0; n < kLanes; ++n) {
      sum[n] += t < averages ? grad[t * kLanes + n] : 0;
      to[t * kLanes + n] = sum[n] / double(rows);
      sum[n] -= t >= rows - 1 ? grad[(t - rows + 1) * kLanes + n] : 0;
    }
}

// Eight series on their way.
struct Series {
  const Plan& plan;
  int64_t size;
  std::vector<double> y, weights, trend, seasonal, rest, weighted, cycles, work;
  std::unique_ptr<bool[]> present;
  double level[kLanes] = {}, count[kLanes] = {};
  std::vector<Balance> phases;
  std::vector<Balance> of_trend;
  Scratch scratch;
  bool missing = false;

  explicit Series(const Plan& plan_)
      : plan(plan_),
        size(plan.steps * kLanes),
        y(size),
        weights(size, 1.0),
        trend(size),
        seasonal(size),
        rest(size),
        weighted(size),
        cycles(size + 2 * plan.period * kLanes),
        work(cycles.size()),
        present(std::make_unique<bool[]>(size)) {
    std::fill_n(present.get(), size, true);
  }

  // Less its level, on which the parts do not depend, but their digits do.
  template <typename scalar_t>
  void read(const scalar_t* x, int64_t stride, int64_t width) {
    for (int64_t t = 0; t < plan.steps; ++t)
      for (int64_t n = 0; n < width; ++n) {
        const bool known = std::isfinite(x[t * stride + n]);
        present[t * kLanes + n] = known;
        level[n] += known ? x[t * stride + n] : 0;
        count[n] += known;
      }
    for (int64_t n = 0; n < width; ++n) level[n] /= std::max(count[n], 1.0);
    for (int64_t t = 0; t < plan.steps; ++t)
      for (int64_t n = 0; n < width; ++n) {
        const bool known = present[t * kLanes + n];
        y[t * kLanes + n] = known ? x[t * stride + n] - level[n] : 0;
        weights[t * kLanes + n] = known;
        missing |= !known;
      }
  }

  void balance_all() {
    phases.clear(), of_trend.clear();
    for (int64_t j = 0; j < plan.period; ++j)
      phases.push_back(balance(plan.phase(j), &weights[j * kLanes], &present[j * kLanes], plan.period * kLanes));
    of_trend.push_back(balance(plan.trend, weights.data(), present.get(), kLanes));
  }

  void weigh(bool by_weights) {
    for (int64_t i = 0; i < size && by_weights; ++i) weighted[i] = weights[i] * rest[i];
  }

  void inner_pass(bool by_weights) {
    const int64_t period = plan.period, apart = period * kLanes;
    for (int64_t i = 0; i < size; ++i) rest[i] = y[i] - trend[i];
    weigh(by_weights);
    for (int64_t j = 0; j < period; ++j) {
      const int64_t at = j * kLanes;
      by_weights ? smooth(plan.phase(j), phases[j], &rest[at], &weighted[at], apart, &cycles[at], apart, scratch)
                 : smooth(plan.phase(j), &rest[at], apart, &cycles[at], apart, scratch);
    }
    moving(cycles.data(), plan.steps + 2 * period, period, work.data());
    moving(work.data(), plan.steps + period + 1, period, work.data());
    moving(work.data(), plan.steps + 2, 3, work.data());
    smooth(plan.low_pass, work.data(), kLanes, rest.data(), kLanes, scratch);
    for (int64_t i = 0; i < size; ++i) {
      seasonal[i] = cycles[apart + i] - rest[i];
      rest[i] = y[i] - seasonal[i];
    }
    weigh(by_weights);
    by_weights ? smooth(plan.trend, of_trend[0], rest.data(), weighted.data(), kLanes, trend.data(), kLanes, scratch)
               : smooth(plan.trend, rest.data(), kLanes, trend.data(), kLanes, scratch);
  }

  // The transpose of every line of inner_pass, last to first. What came to the trend and the seasonal stands in
  // `trend` and `seasonal`; what goes to y is added to `y`, to the trend before is left in `trend`.
  void inner_pass_back(bool by_weights) {
    const int64_t period = plan.period, apart = period * kLanes;
    const auto fill = [](std::vector<double>& x) { std::fill(x.begin(), x.end(), 0.0); };
    const auto finish = [&] {
      for (int64_t i = 0; i < size && by_weights; ++i) rest[i] += weights[i] * weighted[i];
      for (int64_t i = 0; i < size; ++i) y[i] += rest[i];
      fill(weighted);
    };
    fill(rest);
    by_weights ? spread(plan.trend, of_trend[0], trend.data(), kLanes, rest.data(), weighted.data(), kLanes, scratch)
               : spread(plan.trend, trend.data(), kLanes, rest.data(), kLanes, scratch);
    finish();
    for (int64_t i = 0; i < size; ++i) seasonal[i] -= rest[i];
    fill(work), fill(cycles);
    spread(plan.low_pass, seasonal.data(), kLanes, work.data(), kLanes, scratch);
    spread_moving(work.data(), plan.steps + 2, 3, cycles.data());
    spread_moving(cycles.data(), plan.steps + period + 1, period, work.data());
    spread_moving(work.data(), plan.steps + 2 * period, period, cycles.data());
    for (double& g : cycles) g = -g;
    for (int64_t i = 0; i < size; ++i) cycles[apart + i] += seasonal[i];
    fill(rest), fill(seasonal);
    for (int64_t j = 0; j < period; ++j) {
      const int64_t at = j * kLanes;
      by_weights ? spread(plan.phase(j), phases[j], &cycles[at], apart, &rest[at], &weighted[at], apart, scratch)
                 : spread(plan.phase(j), &cycles[at], apart, &rest[at], apart, scratch);
    }
    finish();
    for (int64_t i = 0; i < size; ++i) trend[i] = -rest[i];
  }

  // (1 - (r / 6 medians)^2)^2, where r is the size of the residual.
  void weigh_outliers() {
    std::vector<double> sizes;
    for (int64_t n = 0; n < kLanes; ++n) {
      sizes.clear();
      for (int64_t i = n; i < size; i += kLanes) {
        rest[i] = std::abs(y[i] - trend[i] - seasonal[i]);
        if (present[i]) sizes.push_back(rest[i]);
      }
      const double scale = 6 * median(sizes);
      for (int64_t i = n; i < size; i += kLanes) {
        const double far = scale > 0 ? rest[i] / scale : 0, fall = 1 - far * far;
        weights[i] = !present[i] ? 0 : far <= 0.001 ? 1 : far <= 0.999 ? fall * fall : 0;
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
    for (int64_t outside = 0; outside <= plan.outer; ++outside) {
      if (outside) weigh_outliers();
      const bool by_weights = outside || missing;
      if (by_weights) balance_all();
      for (int64_t inside = 0; inside < plan.inner; ++inside) inner_pass(by_weights);
    }
  }

  template <typename scalar_t>
  void write(scalar_t* const (&to)[4], int64_t at, int64_t stride, int64_t width) const {
    constexpr scalar_t nan = std::numeric_limits<scalar_t>::quiet_NaN();
    for (int64_t t = 0; t < plan.steps; ++t, at += stride)
      for (int64_t n = 0; n < width; ++n) {
        const int64_t i = t * kLanes + n;
        to[0][at + n] = count[n] > 0 ? scalar_t(trend[i] + level[n]) : nan;
        to[1][at + n] = count[n] > 0 ? scalar_t(seasonal[i]) : nan;
        to[2][at + n] = present[i] ? scalar_t(y[i] - trend[i] - seasonal[i]) : nan;
        to[3][at + n] = scalar_t(weights[i]);
      }
  }
};

// Calls body(first element, width) for every eight series of every panel, in parallel.
template <typename Body>
void for_each_lanes(const Panels& panels, const Body& body) {
  const int64_t blocks = (panels.assets + kLanes - 1) / kLanes;
  const int64_t grain = std::max<int64_t>(1, kGrain / (panels.steps * kLanes));
  torch::stable::parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kLanes;
      body(i / blocks * panels.size() + first, std::min(kLanes, panels.assets - first));
    }
  });
}

template <typename scalar_t>
bool complete(const Tensor& x) {
  const scalar_t* from = x.const_data_ptr<scalar_t>();
  return std::all_of(from, from + x.numel(), [](scalar_t value) { return std::isfinite(value); });
}

struct Smoothers {
  Smoother by[3];
  Smoothers(const std::vector<int64_t>& lengths, const std::vector<int64_t>& degrees,
            const std::vector<int64_t>& jumps) {
    STD_TORCH_CHECK(lengths.size() == 3 && degrees.size() == 3 && jumps.size() == 3, "stl: has three smoothers");
    for (int i = 0; i < 3; ++i) by[i] = {lengths[i], degrees[i], jumps[i]};
  }
};

}  // namespace commodity
