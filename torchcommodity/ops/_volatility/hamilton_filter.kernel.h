// Hamilton filter: regime probabilities and log-likelihoods of returns (..., T, N) -> (..., T, K + 1, N). In float64.
// Bayes' rule divides in every row, so that time cannot be split into chunks.
#include "lanes.h"

using namespace commodity;

namespace {

constexpr int64_t kPrefetchRows = 8;

template <typename scalar_t>
struct Filter {
  const scalar_t *returns, *mean_data, *variance, *transition_data, *initial;
  scalar_t* y;
  int64_t steps, count, assets;
  const double* before = nullptr;  // of a live update: the probabilities predicted for its first row,
  double* after = nullptr;         // and for the row after its last

  int64_t numbers() const { return count * (count + 5); }

  // The log-density of regime k is log_peak - (r - mean)^2 half_precision.
  template <typename Lanes, typename Memory>
  struct Regimes {
    using Number = typename Lanes::Number;
    Memory memory;
    int64_t count;

    COMMODITY_INLINE Number& mean(int64_t k) const { return memory[k]; }
    COMMODITY_INLINE Number& log_peak(int64_t k) const { return memory[count + k]; }
    COMMODITY_INLINE Number& half_precision(int64_t k) const { return memory[2 * count + k]; }
    COMMODITY_INLINE Number& probability(int64_t k) const { return memory[3 * count + k]; }
    COMMODITY_INLINE Number& joint(int64_t k) const { return memory[4 * count + k]; }
    COMMODITY_INLINE Number& transition(int64_t k) const { return memory[5 * count + k]; }

    COMMODITY_INLINE void predict() const {
      for (int64_t to = 0; to < count; ++to) {
        Number sum = {};
        for (int64_t from = 0; from < count; ++from) sum += transition(from * count + to) * probability(from);
        joint(to) = sum;
      }
    }

    // Bayes' rule, with densities relative to the largest among the possible regimes, so that they do not all
    // underflow. Returns the log-likelihood of the row.
    COMMODITY_INLINE Number update(const Number& r) const {
      Number largest = Number{} - INFINITY, total = {};
      for (int64_t k = 0; k < count; ++k) {
        const Number density = log_density(k, r);
        largest = (joint(k) > 0) & (density > largest) ? density : largest;
      }
      for (int64_t k = 0; k < count; ++k) total += joint(k) *= fast_exp(log_density(k, r) - largest);
      for (int64_t k = 0; k < count; ++k) probability(k) = joint(k) / total;
      return largest + fast_log(total);
    }

    // A missing return carries no information: every regime has density 1.
    COMMODITY_INLINE Number log_density(int64_t k, const Number& r) const {
      const Number deviation = r - mean(k), density = log_peak(k) - deviation * deviation * half_precision(k);
      return r == r ? density : Number{};
    }
  };

  template <typename Lanes, typename Memory>
  COMMODITY_INLINE void operator()(const Lanes& lanes, const Memory& memory, int64_t panel, int64_t n) const {
    using Number = typename Lanes::Number;
    const Regimes<Lanes, Memory> regimes{memory, count};
    const int64_t column = panel * count * assets + n;
    for (int64_t k = 0; k < count; ++k) {
      const Number variance_k = lanes.load(variance + column + k * assets);
      regimes.mean(k) = lanes.load(mean_data + column + k * assets);
      regimes.log_peak(k) = -0.5 * fast_log(6.283185307179586477 * variance_k);
      regimes.half_precision(k) = 0.5 / variance_k;
      regimes.joint(k) = before ? lanes.load(before + column + k * assets) : lanes.load(initial + column + k * assets);
    }
    for (int64_t k = 0; k < count * count; ++k)
      regimes.transition(k) = lanes.load(transition_data + (panel * count * count + k) * assets + n);
    const scalar_t* r = returns + panel * steps * assets + n;
    scalar_t* to = y + panel * steps * (count + 1) * assets + n;
    for (int64_t t = 0; t < steps; ++t, r += assets) {
      if (t + kPrefetchRows < steps) lanes.prefetch(r + kPrefetchRows * assets);
      if (t > 0) regimes.predict();
      const Number likelihood = regimes.update(lanes.load(r));
      for (int64_t k = 0; k < count; ++k, to += assets) lanes.store(regimes.probability(k), to);
      lanes.store(likelihood, to);
      to += assets;
    }
    if (after && steps > 0) regimes.predict();
    for (int64_t k = 0; after && k < count; ++k) lanes.store(regimes.joint(k), after + column + k * assets);
  }
};

Tensor filter(const Tensor& returns_, const Tensor& mean_, const Tensor& variance_, const Tensor& transition_,
              const Tensor& initial_, const double* before = nullptr, double* after = nullptr) {
  const Tensor returns = contiguous(returns_), mean = contiguous(mean_), variance = contiguous(variance_),
               transition = contiguous(transition_), initial = contiguous(initial_);
  const int64_t count = mean.size(-2), steps = returns.size(-2), assets = returns.size(-1);
  for (const Tensor& x : {mean, variance, initial}) check_rows("hamilton_filter", "parameters", x, returns, count);
  check_rows("hamilton_filter", "transition", transition, returns, count * count);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape.insert(shape.end() - 1, count + 1);
  Tensor y = new_empty(returns, shape);
  dispatch("hamilton_filter", returns, [&]<typename scalar_t>() {
    for_each_column(y, count_panels(returns), steps, assets,
                    Filter<scalar_t>{returns.const_data_ptr<scalar_t>(), mean.const_data_ptr<scalar_t>(),
                                     variance.const_data_ptr<scalar_t>(), transition.const_data_ptr<scalar_t>(),
                                     initial.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), steps, count,
                                     assets, before, after});
  });
  return y;
}

Tensor hamilton_filter(const Tensor& returns, const Tensor& mean, const Tensor& variance, const Tensor& transition,
                       const Tensor& initial) {
  return filter(returns, mean, variance, transition, initial);
}

#if !defined(COMMODITY_GPU)
// The filter over some rows, and the probabilities (..., K, N) predicted after them, from those before them.
std::tuple<Tensor, Tensor> hamilton_filter_step(const Tensor& returns, const Tensor& mean, const Tensor& variance,
                                                const Tensor& transition, const Tensor& before_) {
  const Tensor before = contiguous(before_);
  STD_TORCH_CHECK(before.scalar_type() == torch::headeronly::ScalarType::Double && before.sizes().equals(mean.sizes()),
                  "hamilton_filter_step: the state must be float64 (..., K, N)");
  Tensor after = new_empty(before, before.sizes());
  return {filter(returns, mean, variance, transition, mean, before.const_data_ptr<double>(),
                 after.mutable_data_ptr<double>()),
          after};
}
#endif

}  // namespace

COMMODITY_KERNEL(hamilton_filter,
                 "(Tensor returns, Tensor mean, Tensor variance, Tensor transition, Tensor initial) -> Tensor")
#if !defined(COMMODITY_GPU)
COMMODITY_OPERATOR(
    hamilton_filter_step,
    "(Tensor returns, Tensor mean, Tensor variance, Tensor transition, Tensor state) -> (Tensor, Tensor)")
#endif
