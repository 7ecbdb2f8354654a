// Trend, seasonal and residual of prices (..., T, N): a moving average, and the means of what it leaves by phase.
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kWide =
    64;  // columns handled together: four cache lines of each row, so that pages change less often

struct Settings {
  int64_t period, steps, stride, width;
  bool multiplicative, causal;
};

template <typename scalar_t>
bool present(const Settings& s, scalar_t x) {
  return std::isfinite(x) && (!s.multiplicative || x > 0);
}

// A block of columns on its way. Most are `whole`: of full width and without a missing price, so that nothing is
// counted. The rest, price less trend or over it, stands in `residual` until its seasonal is known.
template <bool whole, typename scalar_t>
struct Block {
  const Settings& s;
  const scalar_t* x;
  scalar_t *trend, *seasonal, *residual;
  const int64_t width = whole ? kWide : s.width;
  const bool even = s.period % 2 == 0;
  const int64_t lookback = even ? s.period : s.period - 1, ahead = s.causal ? 0 : s.period / 2;
  double sum[kWide] = {}, count[kWide] = {}, last_sum[kWide] = {}, last_count[kWide] = {}, rest[kWide] = {};
  double mean[kWide] = {}, middle[kWide] = {}, known[kWide] = {};
  std::vector<double> sums = zeros(), counts = zeros(), means = zeros();  // of each phase

  std::vector<double> zeros() const { return std::vector<double>(s.period * kWide); }

  void run() {
    for (int64_t t = 0; t < s.steps + ahead; ++t) {
      if (t < s.steps) slide(t);
      if (t < ahead) continue;
      detrend(t - ahead, t >= lookback && t < s.steps);
      see(t - ahead);
      if (s.causal) write(t);
    }
    if (s.causal) return;
    average();
    for (int64_t t = 0; t < s.steps; ++t) write(t);
  }

  void add(int64_t t, double sign) {
    const scalar_t* row = x + t * s.stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool counts = whole || present(s, row[n]);
      sum[n] += counts ? sign * double(row[n]) : 0;
      if (!whole) count[n] += counts ? sign : 0;
    }
  }

  // The sum over the last `period` rows, taken anew once a period, so that no error is carried along.
  void slide(int64_t t) {
    std::copy_n(sum, width, last_sum);
    std::copy_n(count, width, last_count);
    if (t % s.period == 0) {
      std::fill_n(sum, width, 0.0);
      std::fill_n(count, width, 0.0);
      for (int64_t u = std::max<int64_t>(0, t - s.period + 1); u < t; ++u) add(u, 1);
    } else if (t >= s.period) {
      add(t - s.period, -1);
    }
    add(t, 1);
  }

  // An even period counts each of its inner rows twice and the two ends once: the sum at t and the sum at t - 1. Means
  // are finished before they are used: fused into a difference, a whole block would have other bits than one that is
  // not.
  void detrend(int64_t t, bool full) {
    const scalar_t* price = x + t * s.stride;
    scalar_t *to = trend + t * s.stride, *left = residual + t * s.stride;
    const double* other = even ? last_sum : sum;
    const double* others = even ? last_count : count;
    const double share = full ? 1 / double(2 * s.period) : std::nan("");
    for (int64_t n = 0; n < width; ++n) {
      const double weight = count[n] + others[n];
      const bool enough = full && weight >= s.period;  // half of 2 x period
      mean[n] = whole || enough ? (sum[n] + other[n]) * (whole ? share : 1 / weight) : std::nan("");
    }
    for (int64_t n = 0; n < width; ++n) {
      const double known = whole || present(s, price[n]) ? double(price[n]) : std::nan("");
      rest[n] = s.multiplicative ? known / mean[n] : known - mean[n];
      to[n] = scalar_t(mean[n]);
      left[n] = scalar_t(rest[n]);
    }
  }

  // The sum of each phase; when the seasonal of a row is the next to be known, its mean, and the mean of these means.
  void see(int64_t t) {
    const int64_t phase = t % s.period * kWide;
    for (int64_t n = 0; n < width; ++n) {
      const bool counts_here = rest[n] == rest[n];
      sums[phase + n] += counts_here ? rest[n] : 0;
      counts[phase + n] += counts_here ? 1 : 0;
    }
    if (!s.causal) return;
    if (phase == 0) gather();
    for (int64_t n = 0; n < width; ++n) {
      const bool counts_here = rest[n] == rest[n];
      known[n] += counts_here && counts[phase + n] == 1 ? 1 : 0;
      const double before = means[phase + n];
      means[phase + n] = counts[phase + n] > 0 ? sums[phase + n] / counts[phase + n] : 0;
      middle[n] += (means[phase + n] - before) / double(s.period);
    }
  }

  void average() {
    for (int64_t k = 0; k < s.period * kWide; ++k) {
      known[k % kWide] += counts[k] > 0 ? 1 : 0;
      means[k] = counts[k] > 0 ? sums[k] / counts[k] : 0;
    }
    gather();
  }

  void gather() {
    std::fill_n(middle, kWide, 0.0);
    for (int64_t k = 0; k < s.period * kWide; ++k) middle[k % kWide] += means[k];
    for (double& m : middle) m /= double(s.period);
  }

  void write(int64_t t) {
    const double* of_phase = means.data() + t % s.period * kWide;
    scalar_t *to = seasonal + t * s.stride, *left = residual + t * s.stride;
    for (int64_t n = 0; n < width; ++n) {
      const double found = s.multiplicative ? of_phase[n] / middle[n] : of_phase[n] - middle[n];
      const double season = known[n] < double(s.period) ? std::nan("") : found;
      to[n] = scalar_t(season);
      left[n] = scalar_t(s.multiplicative ? double(left[n]) / season : double(left[n]) - season);
    }
  }
};

template <typename scalar_t>
bool complete(const Settings& s, const scalar_t* x) {
  int32_t missing = s.width < kWide;
  for (int64_t t = 0; t < s.steps && !missing; ++t)
    for (int64_t n = 0; n < kWide; ++n) missing |= !present(s, x[t * s.stride + n]);
  return !missing;
}

template <typename scalar_t>
COMMODITY_SIMD void decompose(const Settings& s, const scalar_t* x, scalar_t* trend, scalar_t* seasonal,
                              scalar_t* residual) {
  if (complete(s, x)) return Block<true, scalar_t>{s, x, trend, seasonal, residual}.run();
  Block<false, scalar_t>{s, x, trend, seasonal, residual}.run();
}

template <typename scalar_t>
void decompose_all(const Tensor& prices, int64_t period, bool multiplicative, bool causal, Tensor (&parts)[3]) {
  const Panels panels(prices);
  const scalar_t* x = prices.const_data_ptr<scalar_t>();
  scalar_t* to[3];
  for (int i = 0; i < 3; ++i) to[i] = parts[i].mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.assets + kWide - 1) / kWide;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, panels.steps * kWide));
  torch::stable::parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kWide, at = i / blocks * panels.size() + first;
      const int64_t width = std::min(kWide, panels.assets - first);
      const Settings s{period, panels.steps, panels.assets, width, multiplicative, causal};
      decompose(s, x + at, to[0] + at, to[1] + at, to[2] + at);
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> seasonal_decompose(const Tensor& prices_, int64_t period, bool multiplicative,
                                                      bool causal) {
  STD_TORCH_CHECK(period >= 2, "seasonal_decompose: period must be >= 2");
  const Tensor prices = contiguous(prices_);
  const auto empty = [&] { return on_huge_pages(new_empty(prices, prices.sizes())); };
  Tensor parts[3] = {empty(), empty(), empty()};
  THO_DISPATCH_V2(prices.scalar_type(), "seasonal_decompose",
                  AT_WRAP([&] { decompose_all<scalar_t>(prices, period, multiplicative, causal, parts); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {parts[0], parts[1], parts[2]};
}

}  // namespace

COMMODITY_OPERATOR(seasonal_decompose,
                   "(Tensor prices, SymInt period, bool multiplicative, bool causal) -> (Tensor, Tensor, Tensor)")
