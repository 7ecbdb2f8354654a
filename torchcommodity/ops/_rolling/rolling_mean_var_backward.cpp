// Gradient of the rolling mean (order 1), variance (order 2) or standard deviation (order 2 with `std`) of (..., T, N).
//
// With the weight w_t = grad_t / n_t, 2 grad_t / (n_t - ddof), or half of that over std_t:
// dx_s = sum of w_t, or x_s sum of w_t - sum of w_t mean_t, over the windows t that contain row s.
//
// The count and mean of each window are recomputed block by block with the scheme of windows.h. The sums over windows
// t = s .. s + window - 1 use the same scheme backward in time: a suffix of this block and a prefix of the next one. In
// complete windows the counts are known beforehand.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kTaskBlocks = 16;  // blocks per task; each task recomputes the weights of the block after them

enum Kind { kMean, kVariance, kStd };

template <typename scalar_t, Kind kind>
struct Gradient {
  const scalar_t *grad, *x, *deviation;
  scalar_t* dx;
  const int64_t steps, stride, window, width;
  const double min_periods, ddof;
  static constexpr bool variance = kind != kMean;
  static constexpr int64_t kWeights = (variance ? 2 : 1) * kStrip;
  double *suffix, *weights[2];  // per row: count and sum of a suffix; weight and weight times mean, for two blocks

  inline bool block_finite(int64_t block) const {
    const int64_t rows = std::min(window, steps - block * window);
    return block < 0 || rows <= 0 || all_finite(x + block * window * stride, rows, stride, width);
  }

  template <bool complete>
  inline void add(double* count, double* total, int64_t t) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = complete || row[n] - row[n] == 0;
      if (!complete) count[n] += finite ? 1 : 0;
      total[n] += finite ? row[n] : 0;
    }
  }

  // Suffix counts and sums of the block before the one that begins in row `begin`.
  template <bool complete>
  inline void compute_suffix(int64_t begin) const {
    double count[kStrip] = {}, total[kStrip] = {};
    if (begin == 0) std::fill_n(suffix, 2 * window * kStrip, 0.0);
    for (int64_t j = window - 1; begin > 0 && begin < steps && j >= 0; --j) {
      std::copy_n(count, width, suffix + 2 * j * kStrip);
      std::copy_n(total, width, suffix + (2 * j + 1) * kStrip);
      add<complete>(count, total, begin - window + j);
    }
  }

  // Weights of the windows that end in a block; zero after the last row.
  template <bool complete>
  inline void compute_weights(int64_t begin, double* output) const {
    constexpr bool needs_sums = variance || !complete;
    if (needs_sums) compute_suffix<complete>(begin);
    double count[kStrip] = {}, total[kStrip] = {};
    for (int64_t j = 0; j < window; ++j) {
      double *weight = output + 2 * j * kStrip, *weighted_mean = weight + kStrip;
      if (begin + j >= steps) {
        std::fill_n(weight, 2 * kStrip, 0.0);
        continue;
      }
      if (needs_sums) add<complete>(count, total, begin + j);
      const int64_t row = (begin + j) * stride;
      const double *suffix_count = suffix + 2 * j * kStrip, *suffix_total = suffix_count + kStrip;
      const double complete_count = double(begin ? window : j + 1);
      for (int64_t n = 0; n < width; ++n) {
        const double window_count = complete ? complete_count : suffix_count[n] + count[n];
        const double scale = kind == kStd ? deviation[row + n] : 0.5;
        const double factor = 1 / (kind == kMean ? window_count : (window_count - ddof) * scale);
        const bool defined = (window_count >= min_periods) & (scale > 0);
        weight[n] = defined ? grad[row + n] * factor : 0;
        if (variance) weighted_mean[n] = defined ? weight[n] * (suffix_total[n] + total[n]) * (1 / window_count) : 0;
      }
    }
  }

  inline void compute_weights(int64_t block, bool complete) const {
    if (complete)
      compute_weights<true>(block * window, weights[block % 2]);
    else
      compute_weights<false>(block * window, weights[block % 2]);
  }

  // dx of one block, from the weights of this block and of the next one, which become prefix sums.
  inline void accumulate(int64_t begin, const double* current, double* next) const {
    double total[2 * kStrip] = {};
    for (int64_t j = 0; j < window; ++j) {
      double* row = next + 2 * j * kStrip;
      for (int64_t n = 0; n < kWeights; ++n) {
        const double weight = row[n];
        row[n] = total[n], total[n] += weight;
      }
    }
    std::fill_n(total, 2 * kStrip, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      const double *weight = current + 2 * j * kStrip, *prefix = next + 2 * j * kStrip;
      for (int64_t n = 0; n < kWeights; ++n) total[n] += weight[n];
      if (begin + j >= steps) continue;
      const scalar_t* row = x + (begin + j) * stride;
      scalar_t* output = dx + (begin + j) * stride;
      for (int64_t n = 0; n < width; ++n) {
        const double value = row[n], sum = total[n] + prefix[n];
        const double mean_sum = variance ? total[kStrip + n] + prefix[kStrip + n] : 0;
        output[n] = static_cast<scalar_t>(value - value == 0 ? (variance ? value * sum - mean_sum : sum) : 0);
      }
    }
  }

  // Blocks [first, last), backward in time, after the weights of block `last`. The functions are called in one place
  // each: everything is inlined.
  inline void run(int64_t first, int64_t last) const {
    bool finite = block_finite(last);
    for (int64_t block = last; block >= first; --block) {
      const bool previous_finite = block_finite(block - 1);
      compute_weights(block, finite && previous_finite);
      finite = previous_finite;
      if (block < last) accumulate(block * window, weights[block % 2], weights[(block + 1) % 2]);
    }
  }
};

template <typename scalar_t, Kind kind>
COMMODITY_SIMD void run_strip(const Gradient<scalar_t, kind>& strip, int64_t first, int64_t last) {
  strip.run(first, last);
}

struct Settings {
  int64_t window;
  double min_periods, ddof;
};

template <typename scalar_t, Kind kind>
void run(const Tensor& grad, const Tensor& x, const scalar_t* deviation, Tensor& dx, const Settings& s) {
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t *grads = grad.const_data_ptr<scalar_t>(), *values = x.const_data_ptr<scalar_t>();
  scalar_t* output = dx.mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.steps + s.window - 1) / s.window, tasks = (blocks + kTaskBlocks - 1) / kTaskBlocks;
  const int64_t strips = (panels.assets + kStrip - 1) / kStrip, channel = s.window * kStrip;
  parallel_for(0, panels.batch * strips * tasks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<double[]> scratch(new double[6 * channel]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t block = i % tasks * kTaskBlocks, column = i / tasks % strips * kStrip;
      const int64_t offset = i / tasks / strips * panels.size() + column;
      double* const rows = scratch.get();
      const Gradient<scalar_t, kind> strip{grads + offset,
                                           values + offset,
                                           deviation ? deviation + offset : nullptr,
                                           output + offset,
                                           panels.steps,
                                           panels.assets,
                                           s.window,
                                           std::min(kStrip, panels.assets - column),
                                           s.min_periods,
                                           s.ddof,
                                           rows,
                                           {rows + 2 * channel, rows + 4 * channel}};
      run_strip(strip, block, std::min(block + kTaskBlocks, blocks));
    }
  });
}

template <typename scalar_t>
void run(int64_t order, const Tensor& grad, const Tensor& x, const std::optional<Tensor>& deviation, Tensor& dx,
         const Settings& s) {
  if (deviation)
    run<scalar_t, kStd>(grad, x, deviation->const_data_ptr<scalar_t>(), dx, s);
  else if (order == 2)
    run<scalar_t, kVariance>(grad, x, nullptr, dx, s);
  else
    run<scalar_t, kMean>(grad, x, nullptr, dx, s);
}

Tensor rolling_mean_var_backward(const Tensor& grad_, const Tensor& x_, const std::optional<Tensor>& deviation_,
                                 int64_t window, int64_t min_periods, int64_t ddof, int64_t order) {
  check_same("rolling_mean_var_backward", grad_, x_);
  if (deviation_) check_same("rolling_mean_var_backward", *deviation_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_mean_var_backward: x (..., T, N), window >= 1");
  const Tensor grad = contiguous(grad_), x = contiguous(x_);
  const std::optional<Tensor> deviation = deviation_ ? std::optional(contiguous(*deviation_)) : std::nullopt;
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const Settings s{clamp_window(Panels(x), window), double(std::max(min_periods, ddof + 1)), double(ddof)};
  THO_DISPATCH_V2(x.scalar_type(), "rolling_mean_var_backward",
                  AT_WRAP([&] { run<scalar_t>(order, grad, x, deviation, dx, s); }), AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_mean_var_backward,
                   "(Tensor grad, Tensor x, Tensor? std, SymInt window, SymInt min_periods, SymInt ddof, SymInt "
                   "order) -> Tensor")
