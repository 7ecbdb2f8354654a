// Trend, seasonal and residual of prices (..., T, N): a moving average, and the means of what it leaves by phase.
#include "native.h"

using namespace commodity;

namespace {

struct Settings {
  int64_t period, steps, stride, width;
  bool multiplicative, causal;
};

template <typename scalar_t>
bool present(const Settings& s, scalar_t x) {
  return std::isfinite(x) && (!s.multiplicative || x > 0);
}

// Sums over the last `period` rows, in double and summed anew once a period, so that no error is carried along.
// An even period counts each of its inner rows twice and the two ends once: the sum at t and the sum at t - 1.
template <typename scalar_t>
void trend_of(const Settings& s, const scalar_t* x, double* trend) {
  double sum[kBlock] = {}, count[kBlock] = {}, last_sum[kBlock] = {}, last_count[kBlock] = {};
  const bool even = s.period % 2 == 0;
  const int64_t lookback = even ? s.period : s.period - 1, ahead = s.causal ? 0 : s.period / 2;
  const auto add = [&](int64_t t, double sign) {
    for (int64_t n = 0; n < s.width; ++n) {
      const scalar_t price = x[t * s.stride + n];
      const bool counts = present(s, price);
      sum[n] += counts ? sign * price : 0;
      count[n] += counts ? sign : 0;
    }
  };
  for (int64_t t = 0; t < s.steps; ++t) {
    std::copy_n(sum, s.width, last_sum);
    std::copy_n(count, s.width, last_count);
    if (t % s.period == 0) {
      std::fill_n(sum, s.width, 0.0);
      std::fill_n(count, s.width, 0.0);
      for (int64_t u = std::max<int64_t>(0, t - s.period + 1); u < t; ++u) add(u, 1);
    } else if (t >= s.period) {
      add(t - s.period, -1);
    }
    add(t, 1);
    double* to = trend + (t - ahead) * kBlock;
    for (int64_t n = 0; t >= ahead && n < s.width; ++n) {
      const double total = sum[n] + (even ? last_sum[n] : sum[n]);
      const double weight = count[n] + (even ? last_count[n] : count[n]);
      const bool enough = t >= lookback && weight >= s.period;  // half of 2 x period
      to[n] = enough ? total / weight : std::nan("");
    }
  }
  for (int64_t t = std::max<int64_t>(0, s.steps - ahead); t < s.steps; ++t)
    std::fill_n(trend + t * kBlock, s.width, std::nan(""));
}

// The mean of each phase over the rows seen so far, and the sum of these means, summed anew once a period.
struct Phases {
  std::vector<double> sum, count, mean;
  double total[kBlock] = {}, known[kBlock] = {};
  explicit Phases(int64_t period) : sum(period * kBlock), count(period * kBlock), mean(period * kBlock) {}

  template <typename scalar_t>
  void see(const Settings& s, int64_t t, const scalar_t* x, const double* trend) {
    const int64_t phase = t % s.period * kBlock;
    if (phase == 0) {
      std::fill_n(total, s.width, 0.0);
      for (int64_t k = 0; k < s.period * kBlock; ++k) total[k % kBlock] += mean[k];
    }
    for (int64_t n = 0; n < s.width; ++n) {
      const bool counts = present(s, x[n]) && trend[n] == trend[n];
      const double rest = s.multiplicative ? x[n] / trend[n] : x[n] - trend[n];
      sum[phase + n] += counts ? rest : 0;
      count[phase + n] += counts ? 1 : 0;
      known[n] += counts && count[phase + n] == 1 ? 1 : 0;
      const double before = mean[phase + n];
      mean[phase + n] = count[phase + n] > 0 ? sum[phase + n] / count[phase + n] : 0;
      total[n] += mean[phase + n] - before;
    }
  }
};

template <typename scalar_t>
void write_row(const Settings& s, const Phases& phases, int64_t t, const scalar_t* x, const double* trend,
               scalar_t* trend_out, scalar_t* seasonal, scalar_t* residual) {
  const double* means = phases.mean.data() + t % s.period * kBlock;
  for (int64_t n = 0; n < s.width; ++n) {
    const double mean = means[n], middle = phases.total[n] / s.period;
    const double season = phases.known[n] < s.period ? std::nan("") : s.multiplicative ? mean / middle : mean - middle;
    const double rest = s.multiplicative ? x[n] / (trend[n] * season) : x[n] - trend[n] - season;
    trend_out[n] = scalar_t(trend[n]);
    seasonal[n] = scalar_t(season);
    residual[n] = present(s, x[n]) ? scalar_t(rest) : std::numeric_limits<scalar_t>::quiet_NaN();
  }
}

template <typename scalar_t>
COMMODITY_SIMD void decompose(const Settings& s, const scalar_t* x, scalar_t* trend, scalar_t* seasonal,
                              scalar_t* residual) {
  std::vector<double> exact(s.steps * kBlock);  // a float32 trend would cost the seasonal its digits
  trend_of(s, x, exact.data());
  Phases phases(s.period);
  const auto write = [&](int64_t t) {
    const int64_t at = t * s.stride;
    write_row(s, phases, t, x + at, exact.data() + t * kBlock, trend + at, seasonal + at, residual + at);
  };
  for (int64_t t = 0; t < s.steps; ++t) {
    phases.see(s, t, x + t * s.stride, exact.data() + t * kBlock);
    if (s.causal) write(t);
  }
  for (int64_t t = 0; t < s.steps && !s.causal; ++t) write(t);
}

template <typename scalar_t>
void decompose_all(const Tensor& prices, int64_t period, bool multiplicative, bool causal, Tensor (&parts)[3]) {
  const Panels panels(prices);
  const scalar_t* x = prices.const_data_ptr<scalar_t>();
  scalar_t* to[3];
  for (int i = 0; i < 3; ++i) to[i] = parts[i].mutable_data_ptr<scalar_t>();
  for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
    const int64_t at = panel * panels.size() + first;
    const Settings s{period, panels.steps, panels.assets, last - first, multiplicative, causal};
    decompose(s, x + at, to[0] + at, to[1] + at, to[2] + at);
  });
}

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return new_empty(prices, prices.sizes()); };
  Tensor parts[3] = {empty(), empty(), empty()};
  THO_DISPATCH_V2(prices.scalar_type(), "seasonal_decompose",
                  AT_WRAP([&] { decompose_all<scalar_t>(prices, period, multiplicative, causal, parts); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {parts[0], parts[1], parts[2]};
}

}  // namespace

COMMODITY_OPERATOR(seasonal_decompose,
                   "(Tensor prices, SymInt period, bool multiplicative, bool causal) -> (Tensor, Tensor, Tensor)")
