// Gradient of the rolling skewness (order 3) or kurtosis (order 4) of (..., T, N).
//
// Each window t adds a polynomial in x_s - mean_t to dx_s of every row s that it contains. Its coefficients are
// expanded about an anchor of its block of windows and summed over windows backward in time, as in
// rolling_mean_var_backward.cpp; a row is in windows of two blocks, and each block's polynomial is evaluated about its
// own anchor.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int64_t kLanes = 32;  // columns per strip: five sums and twice four coefficients of a window fit the cache
constexpr int64_t kTaskBlocks = 16;  // blocks per task; each task recomputes the coefficients of the block after them

// Factors of the gradient of one window that depend on its number of values n alone.
template <int order>
struct CountFactors {
  double n, inverse_n, scale, offset;

  inline explicit CountFactors(double n) : n(n), inverse_n(1 / n) {
    const double kurt_scale = (n - 1) / ((n - 2) * (n - 3));
    scale = order == 3 ? 3 * n * std::sqrt(n - 1) / (n - 2) : 4 * kurt_scale * (n + 1) * n;
    offset = order == 3 ? 0 : 3 * kurt_scale * (n - 1);
  }
};

// Coefficients of the polynomial of one window about its anchor, from its gradient g, its output y and its sums of
// powers s1, s2, s3 about the anchor. With z = x_s - mean:
//   skew = k M3 / M2^1.5:    3 g (k z^2 / M2^1.5 - skew z / M2), minus its mean
//   kurt = q M4 / M2^2 - r:  4 g (q z^3 / M2^2 - (kurt + r) z / M2), minus its mean
template <int order>
inline void compute_coefficients(double g, double y, const CountFactors<order>& factors, double s1, double s2,
                                 double s3, double (&output)[order]) {
  const double mean = s1 * factors.inverse_n, m2 = s2 - s1 * mean, inverse = 1 / m2, square = mean * mean;
  const double m3 = s3 - 3 * mean * s2 + 2 * s1 * square;
  const double leading = g * factors.scale * inverse * (order == 3 ? std::sqrt(inverse) : inverse);
  const double linear = order * g * (y + factors.offset) * inverse;
  const double constant = leading * (order == 3 ? m2 : m3) * factors.inverse_n;
  const bool defined = (y == y) & (factors.n >= order) & (m2 > 0);
  const double c1 = (order == 3 ? -2 * mean : 3 * square) * leading - linear;
  const double c0 = (order == 3 ? square : -square * mean) * leading + linear * mean - constant;
  output[0] = defined ? c0 : 0, output[1] = defined ? c1 : 0;
  output[2] = defined ? (order == 3 ? leading : -3 * leading * mean) : 0;
  if constexpr (order == 4) output[3] = defined ? leading : 0;
}

template <typename scalar_t, int order>
struct Gradient {
  const scalar_t *grad, *x, *y;
  scalar_t* dx;
  const int64_t steps, stride, window, width;
  static constexpr int kSums = order, kTerms = order;  // count and sums of powers; coefficients of a polynomial
  double *suffix, *coefficients[2], *anchor[2];        // suffix sums by row; coefficients and anchors of two blocks

  inline bool complete(int64_t begin) const {
    const int64_t first = std::max<int64_t>(0, begin - window), last = std::min(begin + window, steps);
    return first >= last || all_finite(x + first * stride, last - first, stride, width);
  }

  // For each column a value that the windows of a block contain: the first of the block, or the last one before it.
  template <bool complete>
  inline void find_anchor(int64_t begin, double* output) const {
    std::fill_n(output, kLanes, 0.0);
    if (complete && begin < steps) return std::copy_n(x + begin * stride, width, output), void();
    for (int64_t t = std::max<int64_t>(0, begin - window + 1); t < std::min(begin, steps); ++t) copy_finite(t, output);
    for (int64_t t = std::min(begin + window, steps) - 1; t >= begin; --t) copy_finite(t, output);
  }
  inline void copy_finite(int64_t t, double* output) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) output[n] = row[n] - row[n] == 0 ? row[n] : output[n];
  }
  template <bool complete>
  inline void add(double (&sums)[kSums][kLanes], const double* origin, int64_t t) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = complete || row[n] - row[n] == 0;
      const double d = finite ? row[n] - origin[n] : 0, square = d * d;
      if (!complete) sums[0][n] += finite ? 1 : 0;
      sums[1][n] += d, sums[2][n] += square;
      if constexpr (order == 4) sums[3][n] += square * d;
    }
  }

  // Coefficients of the windows that end in a block; zero after the last row.
  template <bool complete>
  inline void compute_block(int64_t begin, double* output, double* origin) const {
    double sums[kSums][kLanes] = {};
    find_anchor<complete>(begin, origin);
    if (begin == 0) std::fill_n(suffix, kSums * window * kLanes, 0.0);
    for (int64_t j = window - 1; begin > 0 && begin < steps && j >= 0; --j) {
      std::copy_n(&sums[0][0], kSums * kLanes, suffix + kSums * j * kLanes);
      add<complete>(sums, origin, begin - window + j);
    }
    std::fill_n(&sums[0][0], kSums * kLanes, 0.0);
    const int64_t rows = std::clamp<int64_t>(steps - begin, 0, window);
    std::fill_n(output + kTerms * rows * kLanes, kTerms * (window - rows) * kLanes, 0.0);
    for (int64_t j = 0; j < rows; ++j) {
      add<complete>(sums, origin, begin + j);
      const int64_t row = (begin + j) * stride;
      compute_row<complete>(grad + row, y + row, double(begin ? window : j + 1), suffix + kSums * j * kLanes, sums,
                            output + kTerms * j * kLanes);
    }
  }
  template <bool complete>
  inline void compute_row(const scalar_t* g, const scalar_t* y_row, double complete_count, const double* s,
                          const double (&sums)[kSums][kLanes], double* __restrict output) const {
    const CountFactors<order> complete_factors(complete_count);
    for (int64_t n = 0; n < width; ++n) {
      const auto factors = complete ? complete_factors : CountFactors<order>(s[n] + sums[0][n]);
      const double s3 = order == 4 ? s[(kSums - 1) * kLanes + n] + sums[kSums - 1][n] : 0;
      double terms[order];
      compute_coefficients<order>(g[n], y_row[n], factors, s[kLanes + n] + sums[1][n], s[2 * kLanes + n] + sums[2][n],
                                  s3, terms);
      for (int k = 0; k < order; ++k) output[k * kLanes + n] = terms[k];
    }
  }
  inline void compute_block(int64_t block) const {
    const int64_t begin = block * window, i = block % 2;
    complete(begin) ? compute_block<true>(begin, coefficients[i], anchor[i])
                    : compute_block<false>(begin, coefficients[i], anchor[i]);
  }

  // The polynomial of column n at d.
  static inline double evaluate(double d, const double* c, int64_t n) {
    const double cubic = order == 4 ? d * c[(kTerms - 1) * kLanes + n] : 0;
    return c[n] + d * (c[kLanes + n] + d * (c[2 * kLanes + n] + cubic));
  }

  // dx of one block, from the coefficients of this block and of the next one, which become prefix sums.
  inline void accumulate(int64_t begin, const double* current, const double* current_anchor, double* next,
                         const double* next_anchor) const {
    double total[kTerms * kLanes] = {};
    for (int64_t j = 0; j < window; ++j)
      for (int64_t n = 0; n < kTerms * kLanes; ++n) {
        const double term = next[kTerms * j * kLanes + n];
        next[kTerms * j * kLanes + n] = total[n], total[n] += term;
      }
    std::fill_n(total, kTerms * kLanes, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      const double *terms = current + kTerms * j * kLanes, *prefix = next + kTerms * j * kLanes;
      for (int64_t n = 0; n < kTerms * kLanes; ++n) total[n] += terms[n];
      if (begin + j >= steps) continue;
      const scalar_t* row = x + (begin + j) * stride;
      scalar_t* output = dx + (begin + j) * stride;
      for (int64_t n = 0; n < width; ++n) {
        const double sum =
            evaluate(row[n] - current_anchor[n], total, n) + evaluate(row[n] - next_anchor[n], prefix, n);
        output[n] = static_cast<scalar_t>(row[n] - row[n] == 0 ? sum : 0);
      }
    }
  }

  // Blocks [first, last), backward in time, after the coefficients of block `last`. The functions are called in one
  // place each: everything is inlined.
  inline void run(int64_t first, int64_t last) const {
    for (int64_t block = last; block >= first; --block) {
      const int i = block % 2;
      compute_block(block);
      if (block < last) accumulate(block * window, coefficients[i], anchor[i], coefficients[1 - i], anchor[1 - i]);
    }
  }
};

template <typename scalar_t, int order>
COMMODITY_SIMD void run_strip(const Gradient<scalar_t, order>& strip, int64_t first, int64_t last) {
  strip.run(first, last);
}

template <typename scalar_t, int order>
void run(const Tensor& grad, const Tensor& x, const Tensor& y, Tensor& dx, int64_t window) {
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t *grads = grad.const_data_ptr<scalar_t>(), *values = x.const_data_ptr<scalar_t>();
  const scalar_t* outputs = y.const_data_ptr<scalar_t>();
  scalar_t* to = dx.mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.steps + window - 1) / window, tasks = (blocks + kTaskBlocks - 1) / kTaskBlocks;
  const int64_t strips = (panels.assets + kLanes - 1) / kLanes, channel = window * kLanes;
  parallel_for(0, panels.batch * strips * tasks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<double[]> scratch(new double[3 * order * channel + 2 * kLanes]());
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t block = i % tasks * kTaskBlocks, column = i / tasks % strips * kLanes;
      const int64_t offset = i / tasks / strips * panels.size() + column;
      double *const suffix = scratch.get(), *const first = suffix + order * channel,
                    *const second = first + order * channel, *const anchors = second + order * channel;
      const Gradient<scalar_t, order> strip{grads + offset,
                                            values + offset,
                                            outputs + offset,
                                            to + offset,
                                            panels.steps,
                                            panels.assets,
                                            window,
                                            std::min(kLanes, panels.assets - column),
                                            suffix,
                                            {first, second},
                                            {anchors, anchors + kLanes}};
      run_strip(strip, block, std::min(block + kTaskBlocks, blocks));
    }
  });
}

template <typename scalar_t>
void run(int64_t order, const Tensor& grad, const Tensor& x, const Tensor& y, Tensor& dx, int64_t window) {
  if (order == 3)
    run<scalar_t, 3>(grad, x, y, dx, window);
  else
    run<scalar_t, 4>(grad, x, y, dx, window);
}

Tensor rolling_skew_kurt_backward(const Tensor& grad_, const Tensor& x_, const Tensor& y_, int64_t window,
                                  int64_t order) {
  check_same("rolling_skew_kurt_backward", grad_, x_);
  check_same("rolling_skew_kurt_backward", y_, x_);
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_skew_kurt_backward: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor grad = contiguous(grad_), x = contiguous(x_), y = contiguous(y_);
  Tensor dx = on_huge_pages(new_empty(x, x.sizes()));
  const int64_t rows = clamp_window(Panels(x), window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_skew_kurt_backward",
                  AT_WRAP([&] { run<scalar_t>(order, grad, x, y, dx, rows); }), AT_EXPAND(AT_FLOATING_TYPES));
  return dx;
}

}  // namespace

COMMODITY_OPERATOR(rolling_skew_kurt_backward,
                   "(Tensor grad, Tensor x, Tensor y, SymInt window, SymInt order) -> Tensor")
