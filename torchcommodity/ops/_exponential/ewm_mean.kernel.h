// Exponentially weighted mean of (..., T, N), with pandas' rules for missing values and one alpha per column: the
// recurrence y_t = (1 - b_t) y_{t-1} + b_t x_t with the share b_t of x_t. A missing value has share zero and leaves the
// mean unchanged.
#include "ewm_weights.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Arguments {
  const scalar_t *x, *alpha;
  scalar_t* y;
  EwmRule rule;
  double min_periods;
  const double* before;  // of a live update: mean, total weight and count (3, N) of each panel before its first row,
  double* after;         // and after its last
};

#if defined(COMMODITY_GPU)

// Two recurrences in one kernel (device_scan.h): the weights give the share of each value, and the shares the means.
template <typename scalar_t>
struct EwmMean : Arguments<scalar_t> {
  static constexpr int kRows = kScanRows<scalar_t>;
  using Links = ScanLinks<kRows>;
  using Weights = BlockScan<WeightMap, kRows>;
  using Means = BlockScan<Affine<>, kRows>;
  struct Shared {
    typename Weights::Shared weights;
    typename Means::Shared means;
  };
  struct Thread {
    ScanPlace place;
    double alpha, count;
    scalar_t x[kRows];
    double shares[kRows];
  };
  static constexpr int kPhases = 7;
  Weights weights;
  Means means;

  COMMODITY_INLINE static Affine<> mean_map(scalar_t x, double share) {
    return {1 - share, {is_finite(x) ? share * x : 0}};
  }

  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int chain, int link, int number) const {
    const EwmRule& rule = this->rule;
    ScanPlace& place = thread.place;
    if constexpr (phase == 0) {
      place = weights.links.place(chain, link, number);
      thread.alpha = read(this->alpha + place.panel * weights.links.columns + place.column);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        thread.x[i] = read(this->x + place.begin + Links::row(place, i) * weights.links.columns);
      WeightMap map = WeightMap::of_row(rule, is_finite(thread.x[0]), thread.alpha);
#pragma unroll
      for (int i = 1; i < kRows; ++i) map = WeightMap::of_row(rule, is_finite(thread.x[i]), thread.alpha).after(map);
      weights.put(shared.weights, place, map);
    } else if constexpr (phase == 1) {
      weights.compose_groups(shared.weights, place);
    } else if constexpr (phase == 2) {
      weights.advance(shared.weights, place, chain, link, [] { return WeightState{0, 0}; });
    } else if constexpr (phase == 3) {
      if (place.chunk >= weights.links.chunks) return;  // idle: there are no states for its rows
      const WeightState before = weights.before(shared.weights, place);
      double total = before.total;
#pragma unroll
      for (int i = 0; i < kRows; ++i) forget(thread.x[i]);
      thread.count = before.count;
#pragma unroll
      for (int i = 0; i < kRows; ++i) thread.shares[i] = rule.next_share(total, is_finite(thread.x[i]), thread.alpha);
      Affine<> map = mean_map(thread.x[0], thread.shares[0]);
#pragma unroll
      for (int i = 1; i < kRows; ++i) map = mean_map(thread.x[i], thread.shares[i]).after(map);
      means.put(shared.means, place, map);
    } else if constexpr (phase == 4) {
      means.compose_groups(shared.means, place);
    } else if constexpr (phase == 5) {
      means.advance(shared.means, place, chain, link, [] { return State<>{}; });
    } else if (place.rows) {
      State<> mean = means.before(shared.means, place);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        forget(thread.x[i]), forget(thread.shares[i]);
        mean = mean_map(thread.x[i], thread.shares[i]).apply(mean);
        thread.count += is_finite(thread.x[i]) ? 1 : 0;
        if (i < place.rows)
          this->y[place.begin + i * means.links.columns] =
              static_cast<scalar_t>(thread.count >= this->min_periods ? mean.y[0] : NAN);
      }
    }
  }
};

template <typename scalar_t>
void run_means(const Tensor& like, const Panels& panels, const Arguments<scalar_t>& in) {
  const typename EwmMean<scalar_t>::Links links(panels.batch, panels.steps, panels.assets);
  const Tensor totals = scratch(like, links.memory(3));
  double* memory = data_ptr<double>(totals);
  launch_links(like, links.chains, links.links(), totals,
               EwmMean<scalar_t>{in, {links, memory + 1}, {links, memory + links.memory(2)}});
}

#else

// `mean` holds that of each column before the first row, and then after the last.
template <typename scalar_t>
COMMODITY_SIMD void run_block(const scalar_t* x, scalar_t* __restrict y, int64_t steps, EwmBlock& block,
                              double* final_mean) {
  double mean[kStrip], shares[kRows * kStrip];
  std::copy_n(final_mean, kStrip, mean);
  for (int64_t t = 0; t < steps; t += kRows) {
    const int64_t rows = std::min(kRows, steps - t);
    const bool shared = block.next(x, steps - t, shares);
    for (int64_t j = 0; j < rows; ++j, x += block.stride, y += block.stride) {
      const double *share = shares + j * block.width, row = double(t + j);
      if (t + j + kPrefetchRows < steps) prefetch(y + kPrefetchRows * block.stride, block.width);
      for (int64_t n = 0; shared && n < block.width; ++n)
        mean[n] += share[0] * (x[n] - mean[n]), y[n] = static_cast<scalar_t>(mean[n]);
      for (int64_t n = 0; !shared && n < block.width; ++n) {
        const double value = x[n] - x[n] == 0 ? x[n] : mean[n];
        mean[n] += share[n] * (value - mean[n]);
        y[n] = static_cast<scalar_t>(row >= block.undefined[n] ? mean[n] : NAN);
      }
    }
  }
  std::copy_n(mean, kStrip, final_mean);
}

template <typename scalar_t>
void run_means(const Tensor&, const Panels& panels, const Arguments<scalar_t>& in) {
  for_each_block(
      panels,
      [&](int64_t panel, int64_t first, int64_t last) {
        const int64_t offset = panel * panels.size() + first, width = last - first, assets = panels.assets;
        const int64_t state = panel * 3 * assets + first;
        EwmBlock block(in.rule, in.alpha + panel * assets + first, assets, width, in.min_periods);
        double mean[kStrip] = {};
        double* const states[] = {mean, block.total, block.count};
        for (int64_t k = 0; in.before && k < 3; ++k) std::copy_n(in.before + state + k * assets, width, states[k]);
        run_block(in.x + offset, in.y + offset, panels.steps, block, mean);
        for (int64_t k = 0; in.after && k < 3; ++k) std::copy_n(states[k], width, in.after + state + k * assets);
      },
      kStrip);
}

#endif

Tensor means(const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, int64_t min_periods,
             const double* before = nullptr, double* after = nullptr) {
  check_rows("ewm_mean", "alpha", alpha_, x_);
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  Tensor y = new_output(x, x.sizes());
  dispatch("ewm_mean", x, [&]<typename scalar_t>() {
    run_means<scalar_t>(x, Panels(x),
                        {x.const_data_ptr<scalar_t>(),
                         alpha.const_data_ptr<scalar_t>(),
                         y.mutable_data_ptr<scalar_t>(),
                         {adjust, ignore_na},
                         double(std::max<int64_t>(1, min_periods)),
                         before,
                         after});
  });
  return y;
}

Tensor ewm_mean(const Tensor& x, const Tensor& alpha, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  return means(x, alpha, adjust, ignore_na, min_periods);
}

#if !defined(COMMODITY_GPU)
std::tuple<Tensor, Tensor> ewm_mean_step(const Tensor& x, const Tensor& alpha, const Tensor& state_, bool adjust,
                                         bool ignore_na, int64_t min_periods) {
  const Tensor before = contiguous(state_);
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.size(-2) == 3 &&
                      before.numel() == 3 * alpha.numel() && x.size(-2) > 0,
                  "ewm_mean_step: state must be float64 (..., 3, N) for x (..., T, N), T >= 1");
  Tensor after = new_empty(before, before.sizes());
  return {means(x, alpha, adjust, ignore_na, min_periods, before.const_data_ptr<double>(),
                after.mutable_data_ptr<double>()),
          after};
}
#endif

}  // namespace

COMMODITY_KERNEL(ewm_mean,
                 "(Tensor x, Tensor alpha, bool adjust=True, bool ignore_na=False, SymInt min_periods=0, bool "
                 "learned=True) -> Tensor")
#if !defined(COMMODITY_GPU)
COMMODITY_OPERATOR(ewm_mean_step,
                   "(Tensor x, Tensor alpha, Tensor state, bool adjust, bool ignore_na, SymInt min_periods) -> "
                   "(Tensor, Tensor)")
#endif
