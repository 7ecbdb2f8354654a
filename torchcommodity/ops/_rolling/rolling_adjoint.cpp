// What the rolling mean (order 1) or variance (order 2) or its root of (..., T, N) makes of a gradient.
//
// Of every window its count and mean are found again, block by block; then the blocks are summed ahead in time, as
// windows are summed backwards: a suffix of this block and a prefix of the next one. Where nothing is missing counts
// are known beforehand.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kChunk = 16;  // blocks that one task takes: it begins with the block after them, once more

enum Kind { kMean, kVariance, kDeviation };

template <typename scalar_t, Kind kind>
struct Adjoint {
  const scalar_t *grad, *x, *root;
  scalar_t* dx;
  const int64_t steps, stride, window, width;
  const double least, ddof;
  static constexpr bool variance = kind != kMean;
  static constexpr int64_t kPushed = (variance ? 2 : 1) * kStrip;
  double *suffix, *push[2];  // of each row of a block: count and sum; push and push times mean, of two blocks

  inline bool full(int64_t block) const {
    const int64_t rows = std::min(window, steps - block * window);
    return block < 0 || rows <= 0 || all_finite(x + block * window * stride, rows, stride, width);
  }

  template <bool all>
  inline void add(double* count, double* total, int64_t t) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = all || row[n] - row[n] == 0;
      if (!all) count[n] += finite ? 1 : 0;
      total[n] += finite ? row[n] : 0;
    }
  }

  // Of each row of a block, what is missing from its windows before the block.
  template <bool all>
  inline void before(int64_t begin) const {
    double count[kStrip] = {}, total[kStrip] = {};
    if (begin == 0) std::fill_n(suffix, 2 * window * kStrip, 0.0);
    for (int64_t j = window - 1; begin > 0 && begin < steps && j >= 0; --j) {
      std::copy_n(count, width, suffix + 2 * j * kStrip);
      std::copy_n(total, width, suffix + (2 * j + 1) * kStrip);
      add<all>(count, total, begin - window + j);
    }
  }

  // push_t = grad_t / n_t, or 2 grad_t / (n_t - ddof), for the rows of a block; zero after the last row.
  template <bool all>
  inline void gather(int64_t begin, double* to) const {
    constexpr bool sums = variance || !all;
    if (sums) before<all>(begin);
    double count[kStrip] = {}, total[kStrip] = {};
    for (int64_t j = 0; j < window; ++j) {
      double *push = to + 2 * j * kStrip, *pushed = push + kStrip;
      if (begin + j >= steps) {
        std::fill_n(push, 2 * kStrip, 0.0);
        continue;
      }
      if (sums) add<all>(count, total, begin + j);
      const int64_t at = (begin + j) * stride;
      const double *counted = suffix + 2 * j * kStrip, *sum = counted + kStrip, every = double(begin ? window : j + 1);
      for (int64_t n = 0; n < width; ++n) {
        const double held = all ? every : counted[n] + count[n], deviation = kind == kDeviation ? root[at + n] : 0.5;
        const double share = 1 / (kind == kMean ? held : (held - ddof) * deviation);
        const bool known = (held >= least) & (deviation > 0);
        push[n] = known ? grad[at + n] * share : 0;
        if (variance) pushed[n] = known ? push[n] * (sum[n] + total[n]) * (1 / held) : 0;
      }
    }
  }

  inline void gather(int64_t block, bool all) const {
    all ? gather<true>(block * window, push[block % 2]) : gather<false>(block * window, push[block % 2]);
  }

  // dx_s = sum of push_t, or x_s sum of push_t - sum of push_t mean_t, over the windows t that hold s.
  inline void spread(int64_t begin, const double* now, double* next) const {
    double total[2 * kStrip] = {};
    for (int64_t j = 0; j < window; ++j) {
      double* row = next + 2 * j * kStrip;
      for (int64_t n = 0; n < kPushed; ++n) {
        const double own = row[n];
        row[n] = total[n], total[n] += own;
      }
    }
    std::fill_n(total, 2 * kStrip, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      const double *own = now + 2 * j * kStrip, *after = next + 2 * j * kStrip;
      for (int64_t n = 0; n < kPushed; ++n) total[n] += own[n];
      if (begin + j >= steps) continue;
      const scalar_t* value = x + (begin + j) * stride;
      scalar_t* to = dx + (begin + j) * stride;
      for (int64_t n = 0; n < width; ++n) {
        const double v = value[n], pushes = total[n] + after[n],
                     pulled = variance ? total[kStrip + n] + after[kStrip + n] : 0;
        to[n] = static_cast<scalar_t>(v - v == 0 ? (variance ? v * pushes - pulled : pushes) : 0);
      }
    }
  }

  inline void run(int64_t from, int64_t to) const {
    bool now = full(to), before = full(to - 1);
    gather(to, now && before);
    for (int64_t block = to - 1; block >= from; --block) {
      now = before, before = full(block - 1);
      gather(block, now && before);
      spread(block * window, push[block % 2], push[(block + 1) % 2]);
    }
  }
};

template <typename scalar_t, Kind kind>
COMMODITY_SIMD void adjoint(const Adjoint<scalar_t, kind>& strip, int64_t from, int64_t to) {
  strip.run(from, to);
}

struct Settings {
  int64_t window;
  double least, ddof;
};

template <typename scalar_t, Kind kind>
void all_adjoints(const Tensor& grad, const Tensor& x, const scalar_t* root, Tensor& dx, const Settings& s) {
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t *from = grad.const_data_ptr<scalar_t>(), *values = x.const_data_ptr<scalar_t>();
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.steps + s.window - 1) / s.window, chunks = (blocks + kChunk - 1) / kChunk;
  const int64_t strips = (panels.assets + kStrip - 1) / kStrip, channel = s.window * kStrip;
  torch::stable::parallel_for(0, panels.batch * strips * chunks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<double[]> scratch(new double[6 * channel]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t chunk = i % chunks * kChunk, first = i / chunks % strips * kStrip;
      const int64_t at = i / chunks / strips * panels.size() + first;
      double* const rows = scratch.get();
      const Adjoint<scalar_t, kind> strip{from + at,
                                          values + at,
                                          root ? root + at : nullptr,
                                          to + at,
                                          panels.steps,
                                          panels.assets,
                                          s.window,
                                          std::min(kStrip, panels.assets - first),
                                          s.least,
                                          s.ddof,
                                          rows,
                                          {rows + 2 * channel, rows + 4 * channel}};
      adjoint(strip, chunk, std::min(chunk + kChunk, blocks));
    }
  });
}

template <typename scalar_t>
void of_kind(int64_t order, const Tensor& grad, const Tensor& x, const std::optional<Tensor>& root, Tensor& dx,
             const Settings& s) {
  if (root)
    all_adjoints<scalar_t, kDeviation>(grad, x, root->const_data_ptr<scalar_t>(), dx, s);
  else if (order == 2)
    all_adjoints<scalar_t, kVariance>(grad, x, nullptr, dx, s);
  else
    all_adjoints<scalar_t, kMean>(grad, x, nullptr, dx, s);
}

Tensor rolling_adjoint(const Tensor& grad_, const Tensor& x_, const std::optional<Tensor>& root_, int64_t window,
                       int64_t min_periods, int64_t ddof, int64_t order) {
  check_same("rolling_adjoint", grad_, x_);
  if (root_) check_same("rolling_adjoint", *root_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_adjoint: x (..., T, N), window >= 1");
  const Tensor grad = contiguous(grad_), x = contiguous(x_);
  const std::optional<Tensor> root = root_ ? std::optional(contiguous(*root_)) : std::nullopt;
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const Settings s{clamp_window(Panels(x), window), double(std::max(min_periods, ddof + 1)), double(ddof)};
  THO_DISPATCH_V2(x.scalar_type(), "rolling_adjoint", AT_WRAP([&] { of_kind<scalar_t>(order, grad, x, root, dx, s); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_adjoint,
                   "(Tensor grad, Tensor x, Tensor? root, SymInt window, SymInt min_periods, SymInt ddof, SymInt "
                   "order) -> Tensor")
