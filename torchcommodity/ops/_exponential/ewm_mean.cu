// Exponentially weighted mean of (..., T, N), with pandas' rules for missing values and one alpha per column: the
// recurrence y_t = (1 - b_t) y_{t-1} + b_t x_t with the share b_t of x_t, (device_scan.h).
#include "ewm_device.h"

using namespace commodity;

namespace {

// Two recurrences in one kernel: the weights give the share of each value, and the shares the means.
template <typename scalar_t>
struct EwmMean {
  using Weights = BlockScan<WeightMap>;
  using Means = BlockScan<Affine<>>;
  struct Shared {
    typename Weights::Shared weights;
    typename Means::Shared means;
  };
  struct Thread {
    ScanPlace place;
    double alpha, count;
    scalar_t x[kScanRows];
    double shares[kScanRows];
  };
  static constexpr int kPhases = 7;
  const scalar_t *x, *alpha;
  scalar_t* y;
  EwmRule rule;
  double min_periods;
  Weights weights;
  Means means;

  COMMODITY_INLINE static Affine<> mean_map(scalar_t x, double share) {
    return {1 - share, {is_valid(x) ? share * x : 0}};
  }

  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int chain, int link, int number) const {
    ScanPlace& place = thread.place;
    if constexpr (phase == 0) {
      place = weights.links.place(chain, link, number);
      thread.alpha = read(alpha + place.panel * weights.links.columns + place.column);
#pragma unroll
      for (int i = 0; i < kScanRows; ++i)
        thread.x[i] = read(x + place.begin + ScanLinks::row(place, i) * weights.links.columns);
      WeightMap map = rule.map(is_valid(thread.x[0]), thread.alpha);
#pragma unroll
      for (int i = 1; i < kScanRows; ++i) map = rule.map(is_valid(thread.x[i]), thread.alpha).after(map);
      weights.put(shared.weights, place, map);
    } else if constexpr (phase == 1) {
      weights.compose_groups(shared.weights, place);
    } else if constexpr (phase == 2) {
      weights.advance(shared.weights, place, chain, link, [] { return WeightState{0, 0}; });
    } else if constexpr (phase == 3) {
      const WeightState before = weights.before(shared.weights, place);
      double total = before.total;
#pragma unroll
      for (int i = 0; i < kScanRows; ++i) forget(thread.x[i]);
      thread.count = before.count;
#pragma unroll
      for (int i = 0; i < kScanRows; ++i)
        thread.shares[i] = rule.next_share(total, is_valid(thread.x[i]), thread.alpha);
      Affine<> map = mean_map(thread.x[0], thread.shares[0]);
#pragma unroll
      for (int i = 1; i < kScanRows; ++i) map = mean_map(thread.x[i], thread.shares[i]).after(map);
      means.put(shared.means, place, map);
    } else if constexpr (phase == 4) {
      means.compose_groups(shared.means, place);
    } else if constexpr (phase == 5) {
      means.advance(shared.means, place, chain, link, [] { return State<>{}; });
    } else if (place.rows) {
      State<> mean = means.before(shared.means, place);
#pragma unroll
      for (int i = 0; i < kScanRows; ++i) {
        forget(thread.x[i]), forget(thread.shares[i]);
        mean = mean_map(thread.x[i], thread.shares[i]).apply(mean);
        thread.count += is_valid(thread.x[i]) ? 1 : 0;
        if (i < place.rows)
          y[place.begin + i * means.links.columns] =
              static_cast<scalar_t>(thread.count >= min_periods ? mean.y[0] : NAN);
      }
    }
  }
};

Tensor ewm_mean(const Tensor& x_, const Tensor& alpha_, bool adjust, bool ignore_na, int64_t min_periods, bool) {
  STD_TORCH_CHECK(x_.scalar_type() == alpha_.scalar_type(), "ewm_mean: alpha must have the dtype of x");
  const Tensor x = contiguous(x_), alpha = contiguous(alpha_);
  const Panels panels(x);
  STD_TORCH_CHECK(alpha.numel() == panels.batch * panels.assets || panels.steps == 0, "ewm_mean: alpha (..., N)");
  Tensor y = new_empty(x, x.sizes());
  dispatch("ewm_mean", x, [&]<typename scalar_t>() {
    const ScanLinks links(panels.batch, panels.steps, panels.assets);
    const Tensor totals = scratch(x, links.memory(3));
    const EwmMean<scalar_t> body{x.const_data_ptr<scalar_t>(),
                                 alpha.const_data_ptr<scalar_t>(),
                                 data_ptr<scalar_t>(y),
                                 {adjust, ignore_na},
                                 double(std::max<int64_t>(1, min_periods)),
                                 {links, data_ptr<double>(totals) + 1},
                                 {links, data_ptr<double>(totals) + links.memory(2)}};
    launch_links(x, links.chains, links.links(), totals, body);
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(ewm_mean)
