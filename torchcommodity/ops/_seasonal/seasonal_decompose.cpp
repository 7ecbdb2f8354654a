// Classical seasonal decomposition of prices (..., T, N): the trend is a moving average over one period; the seasonal
// is the mean of the detrended prices of each phase less the mean of all phases; the residual is the rest.
//
// One pass over time for a block of columns: slide the window sum, write trend and detrended price, update the means of
// the phase, write seasonal and residual. Two-sided, the last step needs the means of all rows and is a second pass.
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kColumns = 64;  // columns per block: four cache lines of each row, for fewer page changes

struct Settings {
  int64_t period, steps, stride, width;
  bool multiplicative, causal;
};

template <typename scalar_t>
bool is_present(const Settings& s, scalar_t x) {
  return std::isfinite(x) && (!s.multiplicative || x > 0);
}

// A block of columns. Most are `complete`, of full width without missing prices, and skip the counting. The detrended
// price is kept in `residual` until the seasonal of its row is computed.
template <bool complete, bool multiplicative, typename scalar_t>
struct Block {
  const Settings& s;
  const scalar_t* x;
  scalar_t *trend, *seasonal, *residual;
  const int64_t width = complete ? kColumns : s.width;
  const bool even = s.period % 2 == 0;
  const int64_t warmup = even ? s.period : s.period - 1, lead = s.causal ? 0 : s.period / 2;
  double sum[kColumns] = {}, count[kColumns] = {}, previous_sum[kColumns] = {}, previous_count[kColumns] = {},
         detrended[kColumns] = {};
  double mean[kColumns] = {}, center[kColumns] = {}, observed_phases[kColumns] = {};
  std::vector<double> phase_sums = zeros(), phase_counts = zeros(), phase_means = zeros();  // of each phase

  std::vector<double> zeros() const { return std::vector<double>(s.period * kColumns); }

  void run() {
    for (int64_t t = 0; t < s.steps + lead; ++t) {
      if (t < s.steps) slide_window(t);
      if (t < lead) continue;
      detrend(t - lead, t >= warmup && t < s.steps);
      update_phase(t - lead);
      if (s.causal) write_row(t);
    }
    if (s.causal) return;
    finish_phases();
    for (int64_t t = 0; t < s.steps; ++t) write_row(t);
  }

  void add(int64_t t, double sign) {
    const scalar_t* row = x + t * s.stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool add_row = complete || is_present(s, row[n]);
      sum[n] += add_row ? sign * double(row[n]) : 0;
      if (!complete) count[n] += add_row ? sign : 0;
    }
  }

  // The sum over the last `period` rows, recomputed once per period so that rounding errors do not accumulate.
  void slide_window(int64_t t) {
    std::copy_n(sum, width, previous_sum);
    std::copy_n(count, width, previous_count);
    if (t % s.period == 0) {
      std::fill_n(sum, width, 0.0);
      std::fill_n(count, width, 0.0);
      for (int64_t u = std::max<int64_t>(0, t - s.period + 1); u < t; ++u) add(u, 1);
    } else if (t >= s.period) {
      add(t - s.period, -1);
    }
    add(t, 1);
  }

  // An even period weighs the two ends by half: the sum at t plus the sum at t - 1. The mean is stored before it is
  // subtracted: contracted to a fused multiply-add, complete and incomplete blocks would differ in the last bit.
  void detrend(int64_t t, bool in_range) {
    const scalar_t* price = x + t * s.stride;
    scalar_t *to = trend + t * s.stride, *residual_row = residual + t * s.stride;
    const double* other_sum = even ? previous_sum : sum;
    const double* other_count = even ? previous_count : count;
    const double inverse_weight = in_range ? 1 / double(2 * s.period) : std::nan("");
    for (int64_t n = 0; n < width; ++n) {
      const double weight = count[n] + other_count[n];
      const bool has_trend = in_range && weight >= s.period;  // at least half of the total weight, 2 x period
      mean[n] =
          complete || has_trend ? (sum[n] + other_sum[n]) * (complete ? inverse_weight : 1 / weight) : std::nan("");
    }
    for (int64_t n = 0; n < width; ++n) {
      const double value = complete || is_present(s, price[n]) ? double(price[n]) : std::nan("");
      detrended[n] = multiplicative ? value / mean[n] : value - mean[n];
      to[n] = scalar_t(mean[n]);
      residual_row[n] = scalar_t(detrended[n]);
    }
  }

  // Updates the sum of the phase of row t and, if causal, its mean and the mean of all phase means.
  void update_phase(int64_t t) {
    const int64_t phase = t % s.period * kColumns;
    for (int64_t n = 0; n < width; ++n) {
      const bool observed = detrended[n] == detrended[n];
      phase_sums[phase + n] += observed ? detrended[n] : 0;
      phase_counts[phase + n] += observed ? 1 : 0;
    }
    if (!s.causal) return;
    if (phase == 0) average_phases();
    for (int64_t n = 0; n < width; ++n) {
      const bool observed = detrended[n] == detrended[n];
      observed_phases[n] += observed && phase_counts[phase + n] == 1 ? 1 : 0;
      const double before = phase_means[phase + n];
      phase_means[phase + n] = phase_counts[phase + n] > 0 ? phase_sums[phase + n] / phase_counts[phase + n] : 0;
      center[n] += (phase_means[phase + n] - before) / double(s.period);
    }
  }

  void finish_phases() {
    for (int64_t k = 0; k < s.period * kColumns; ++k) {
      observed_phases[k % kColumns] += phase_counts[k] > 0 ? 1 : 0;
      phase_means[k] = phase_counts[k] > 0 ? phase_sums[k] / phase_counts[k] : 0;
    }
    average_phases();
  }

  void average_phases() {
    std::fill_n(center, kColumns, 0.0);
    for (int64_t k = 0; k < s.period * kColumns; ++k) center[k % kColumns] += phase_means[k];
    for (double& m : center) m /= double(s.period);
  }

  void write_row(int64_t t) {
    const double* phase_mean = phase_means.data() + t % s.period * kColumns;
    scalar_t *to = seasonal + t * s.stride, *residual_row = residual + t * s.stride;
    for (int64_t n = 0; n < width; ++n) {
      const double value = multiplicative ? phase_mean[n] / center[n] : phase_mean[n] - center[n];
      const double seasonal_value = observed_phases[n] < double(s.period) ? std::nan("") : value;
      to[n] = scalar_t(seasonal_value);
      residual_row[n] = scalar_t(multiplicative ? double(residual_row[n]) / seasonal_value
                                                : double(residual_row[n]) - seasonal_value);
    }
  }
};

template <typename scalar_t>
bool is_complete(const Settings& s, const scalar_t* x) {
  int32_t missing = s.width < kColumns;
  for (int64_t t = 0; t < s.steps && !missing; ++t)
    for (int64_t n = 0; n < kColumns; ++n) missing |= !is_present(s, x[t * s.stride + n]);
  return !missing;
}

template <typename scalar_t>
COMMODITY_SIMD void decompose(const Settings& s, const scalar_t* x, scalar_t* trend, scalar_t* seasonal,
                              scalar_t* residual) {
  const auto run = [&]<bool multiplicative>() {
    if (is_complete(s, x)) return Block<true, multiplicative, scalar_t>{s, x, trend, seasonal, residual}.run();
    Block<false, multiplicative, scalar_t>{s, x, trend, seasonal, residual}.run();
  };
  s.multiplicative ? run.template operator()<true>() : run.template operator()<false>();
}

template <typename scalar_t>
void decompose_all(const Tensor& prices, int64_t period, bool multiplicative, bool causal, Tensor (&parts)[3]) {
  const Panels panels(prices);
  period = limit_window(period, panels.steps);
  const scalar_t* x = prices.const_data_ptr<scalar_t>();
  scalar_t* to[3];
  for (int i = 0; i < 3; ++i) to[i] = parts[i].mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.assets + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, panels.steps * kColumns));
  parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kColumns, offset = i / blocks * panels.size() + first;
      const int64_t width = std::min(kColumns, panels.assets - first);
      const Settings s{period, panels.steps, panels.assets, width, multiplicative, causal};
      decompose(s, x + offset, to[0] + offset, to[1] + offset, to[2] + offset);
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return on_huge_pages(new_empty(prices, prices.sizes())); };
  Tensor parts[3] = {empty(), empty(), empty()};
  dispatch("seasonal_decompose", prices,
           [&]<typename scalar_t>() { decompose_all<scalar_t>(prices, period, multiplicative, causal, parts); });
  return {parts[0], parts[1], parts[2]};
}

}  // namespace

COMMODITY_OPERATOR(
    seasonal_decompose,
    "(Tensor prices, SymInt period, bool multiplicative=False, bool causal=True) -> (Tensor, Tensor, Tensor)")
