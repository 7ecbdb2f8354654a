// What the rolling skewness (order 3) or kurtosis (order 4) of (..., T, N) makes of a gradient.
//
// A window pushes a polynomial in x_s - mean_t to every value that it holds. About one value of its block of windows it
// has four coefficients; these are summed ahead in time as in rolling_adjoint.cpp, and what two blocks push to a value
// is each taken about its own.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kLanes = 32;  // columns together: five sums and twice four coefficients of a window fit the cache
constexpr int64_t kChunk = 16;  // blocks that one task takes: it begins with the block after them, once more
// What of the gradient of a window of n values depends on n alone.
template <int order>
struct Counted {
  double n, share, lead, tails;

  inline explicit Counted(double n) : n(n), share(1 / n) {
    const double scale = (n - 1) / ((n - 2) * (n - 3));
    lead = order == 3 ? 3 * n * std::sqrt(n - 1) / (n - 2) : 4 * scale * (n + 1) * n;
    tails = order == 3 ? 0 : 3 * scale * (n - 1);
  }
};

// Of one window, from its sums about an anchor: what its gradient g pushes, as coefficients about the same anchor.
template <int order>
inline void coefficients(double g, double y, const Counted<order>& of, double s1, double s2, double s3,
                         double (&to)[order]) {
  // skew = k M3 / M2^1.5:      3 g (k z^2 / M2^1.5 - skew z / M2), less its mean
  // kurt = q M4 / M2^2 - r:    4 g (q z^3 / M2^2 - (kurt + r) z / M2), less its mean
  const double mean = s1 * of.share, second = s2 - s1 * mean, inverse = 1 / second, square = mean * mean;
  const double third = s3 - 3 * mean * s2 + 2 * s1 * square;
  const double lead = g * of.lead * inverse * (order == 3 ? std::sqrt(inverse) : inverse);
  const double tilt = order * g * (y + of.tails) * inverse, rest = lead * (order == 3 ? second : third) * of.share;
  const bool known = (y == y) & (of.n >= order) & (second > 0);
  const double c1 = (order == 3 ? -2 * mean : 3 * square) * lead - tilt;
  const double c0 = (order == 3 ? square : -square * mean) * lead + tilt * mean - rest;
  to[0] = known ? c0 : 0, to[1] = known ? c1 : 0;
  to[2] = known ? (order == 3 ? lead : -3 * lead * mean) : 0;
  if constexpr (order == 4) to[3] = known ? lead : 0;
}

template <typename scalar_t, int order>
struct Adjoint {
  const scalar_t *grad, *x, *y;
  scalar_t* dx;
  const int64_t steps, stride, window, width;
  static constexpr int kSums = order, kTerms = order;  // the count and sums of powers; coefficients of a polynomial
  double *suffix, *push[2], *anchor[2];  // sums of each row of a block; coefficients and anchors of two blocks

  inline bool full(int64_t begin) const {
    const int64_t first = std::max<int64_t>(0, begin - window), last = std::min(begin + window, steps);
    return first >= last || all_finite(x + first * stride, last - first, stride, width);
  }

  // A value of each column which the windows of a block hold: its first, or the last before it.
  template <bool all>
  inline void choose(int64_t begin, double* to) const {
    std::fill_n(to, kLanes, 0.0);
    if (all && begin < steps) return std::copy_n(x + begin * stride, width, to), void();
    for (int64_t t = std::max<int64_t>(0, begin - window + 1); t < std::min(begin, steps); ++t) take(t, to);
    for (int64_t t = std::min(begin + window, steps) - 1; t >= begin; --t) take(t, to);
  }
  inline void take(int64_t t, double* to) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) to[n] = row[n] - row[n] == 0 ? row[n] : to[n];
  }
  template <bool all>
  inline void add(double (&sums)[kSums][kLanes], const double* against, int64_t t) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = all || row[n] - row[n] == 0;
      const double d = finite ? row[n] - against[n] : 0, square = d * d;
      if (!all) sums[0][n] += finite ? 1 : 0;
      sums[1][n] += d, sums[2][n] += square;
      if constexpr (order == 4) sums[3][n] += square * d;
    }
  }

  // The coefficients that the windows of a block push, zero after the last row.
  template <bool all>
  inline void gather(int64_t begin, double* to, double* against) const {
    double sums[kSums][kLanes] = {};
    choose<all>(begin, against);
    if (begin == 0) std::fill_n(suffix, kSums * window * kLanes, 0.0);
    for (int64_t j = window - 1; begin > 0 && begin < steps && j >= 0; --j) {
      std::copy_n(&sums[0][0], kSums * kLanes, suffix + kSums * j * kLanes);
      add<all>(sums, against, begin - window + j);
    }
    std::fill_n(&sums[0][0], kSums * kLanes, 0.0);
    const int64_t rows = std::clamp<int64_t>(steps - begin, 0, window);
    std::fill_n(to + kTerms * rows * kLanes, kTerms * (window - rows) * kLanes, 0.0);
    for (int64_t j = 0; j < rows; ++j) {
      add<all>(sums, against, begin + j);
      const int64_t at = (begin + j) * stride;
      pushes<all>(grad + at, y + at, double(begin ? window : j + 1), suffix + kSums * j * kLanes, sums,
                  to + kTerms * j * kLanes);
    }
  }
  template <bool all>
  inline void pushes(const scalar_t* g, const scalar_t* now, double every, const double* s,
                     const double (&sums)[kSums][kLanes], double* __restrict to) const {
    const Counted<order> whole(every);
    for (int64_t n = 0; n < width; ++n) {
      const auto of = all ? whole : Counted<order>(s[n] + sums[0][n]);
      const double s3 = order == 4 ? s[(kSums - 1) * kLanes + n] + sums[kSums - 1][n] : 0;
      double terms[order];
      coefficients<order>(g[n], now[n], of, s[kLanes + n] + sums[1][n], s[2 * kLanes + n] + sums[2][n], s3, terms);
      for (int k = 0; k < order; ++k) to[k * kLanes + n] = terms[k];
    }
  }
  inline void gather(int64_t block) const {
    const int64_t begin = block * window, now = block % 2;
    full(begin) ? gather<true>(begin, push[now], anchor[now]) : gather<false>(begin, push[now], anchor[now]);
  }

  static inline double at(double d, const double* c, int64_t n) {
    const double cubic = order == 4 ? d * c[(kTerms - 1) * kLanes + n] : 0;
    return c[n] + d * (c[kLanes + n] + d * (c[2 * kLanes + n] + cubic));
  }

  // dx_s = the sum of the polynomials of the windows that hold s: some of this block, some of the next one.
  inline void spread(int64_t begin, const double* now, const double* about, double* next, const double* later) const {
    double total[kTerms * kLanes] = {};
    for (int64_t j = 0; j < window; ++j)
      for (int64_t n = 0; n < kTerms * kLanes; ++n) {
        const double own = next[kTerms * j * kLanes + n];
        next[kTerms * j * kLanes + n] = total[n], total[n] += own;
      }
    std::fill_n(total, kTerms * kLanes, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      const double *own = now + kTerms * j * kLanes, *after = next + kTerms * j * kLanes;
      for (int64_t n = 0; n < kTerms * kLanes; ++n) total[n] += own[n];
      if (begin + j >= steps) continue;
      const scalar_t* value = x + (begin + j) * stride;
      scalar_t* to = dx + (begin + j) * stride;
      for (int64_t n = 0; n < width; ++n) {
        const double all = at(value[n] - about[n], total, n) + at(value[n] - later[n], after, n);
        to[n] = static_cast<scalar_t>(value[n] - value[n] == 0 ? all : 0);
      }
    }
  }

  inline void run(int64_t from, int64_t to) const {
    gather(to);
    for (int64_t block = to - 1; block >= from; --block) {
      const int now = block % 2;
      gather(block);
      spread(block * window, push[now], anchor[now], push[1 - now], anchor[1 - now]);
    }
  }
};

template <typename scalar_t, int order>
COMMODITY_SIMD void adjoint(const Adjoint<scalar_t, order>& strip, int64_t from, int64_t to) {
  strip.run(from, to);
}

template <typename scalar_t, int order>
void all_adjoints(const Tensor& grad, const Tensor& x, const Tensor& y, Tensor& dx, int64_t window) {
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t *from = grad.const_data_ptr<scalar_t>(), *values = x.const_data_ptr<scalar_t>();
  const scalar_t* shape = y.const_data_ptr<scalar_t>();
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.steps + window - 1) / window, chunks = (blocks + kChunk - 1) / kChunk;
  const int64_t strips = (panels.assets + kLanes - 1) / kLanes, channel = window * kLanes;
  torch::stable::parallel_for(0, panels.batch * strips * chunks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<double[]> scratch(new double[3 * order * channel + 2 * kLanes]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t chunk = i % chunks * kChunk, first = i / chunks % strips * kLanes;
      const int64_t at = i / chunks / strips * panels.size() + first;
      double *const sums = scratch.get(), *const push = sums + order * channel, *const later = push + order * channel,
                    *const anchors = later + order * channel;
      const Adjoint<scalar_t, order> strip{from + at,
                                           values + at,
                                           shape + at,
                                           to + at,
                                           panels.steps,
                                           panels.assets,
                                           window,
                                           std::min(kLanes, panels.assets - first),
                                           sums,
                                           {push, later},
                                           {anchors, anchors + kLanes}};
      adjoint(strip, chunk, std::min(chunk + kChunk, blocks));
    }
  });
}

template <typename scalar_t>
void of_order(int64_t order, const Tensor& grad, const Tensor& x, const Tensor& y, Tensor& dx, int64_t window) {
  if (order == 3)
    all_adjoints<scalar_t, 3>(grad, x, y, dx, window);
  else
    all_adjoints<scalar_t, 4>(grad, x, y, dx, window);
}

Tensor rolling_shape_adjoint(const Tensor& grad_, const Tensor& x_, const Tensor& y_, int64_t window, int64_t order) {
  check_same("rolling_shape_adjoint", grad_, x_);
  check_same("rolling_shape_adjoint", y_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_shape_adjoint: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), y = contiguous(y_);
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const int64_t rows = clamp_window(Panels(x), window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_shape_adjoint",
                  AT_WRAP([&] { of_order<scalar_t>(order, grad, x, y, dx, rows); }), AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_shape_adjoint, "(Tensor grad, Tensor x, Tensor y, SymInt window, SymInt order) -> Tensor")
