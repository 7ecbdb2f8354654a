// The skewness (order 3) or excess kurtosis (order 4) of what is finite among the last `window` rows of (..., T, N).
//
// As in rolling_var.cpp, values are taken against one that is in the window: the last of the suffix, the first of the
// prefix.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int kSums = 5;  // the count, and the sums of the first four powers

struct Sums {
  double of[kSums][kStrip] = {}, anchor[kStrip] = {};

  template <typename scalar_t>
  inline void add(const scalar_t* row, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      const double x = row[n];
      const bool finite = x - x == 0;
      const double against = of[0][n] == 0 && finite ? x : anchor[n], d = finite ? x - against : 0, square = d * d;
      anchor[n] = against, of[0][n] += finite ? 1 : 0;
      of[1][n] += d, of[2][n] += square, of[3][n] += square * d, of[4][n] += square * square;
    }
  }
};

// The unbiased shape of n values whose sums of powers about some origin are s1 .. s4.
inline double shape(double n, double s1, double s2, double s3, double s4, bool kurtosis) {
  const double mean = s1 / n, second = s2 - s1 * mean;
  const double third = s3 - 3 * mean * s2 + 2 * s1 * mean * mean;
  const double fourth = s4 - 4 * mean * s3 + 6 * mean * mean * s2 - 3 * s1 * mean * mean * mean;
  const double skew = n * std::sqrt(n - 1) / (n - 2) * third / (second * std::sqrt(second));
  const double tails = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * fourth / (second * second) - 3 * (n - 1));
  return second > 0 ? (kurtosis ? tails : skew) : NAN;
}

template <typename scalar_t>
COMMODITY_SIMD void shapes(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                           int64_t window, double least, bool kurtosis, double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  if (block.begin == 0) std::fill_n(suffix, kSums * rows * kStrip, 0.0);
  Sums before, now;
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    for (int k = 0; k < kSums; ++k) std::copy_n(before.of[k], width, suffix + (kSums * j + k) * kStrip);
    before.add(x + (block.begin - window + j) * stride, width);
  }
  for (int64_t j = 0; j < rows; ++j) {
    now.add(x + (block.begin + j) * stride, width);
    const double* s = suffix + kSums * j * kStrip;
    scalar_t* to = y + (block.begin + j) * stride;
    for (int64_t n = 0; n < width; ++n) {
      const double m = now.of[0][n], s1 = now.of[1][n], s2 = now.of[2][n], s3 = now.of[3][n], s4 = now.of[4][n];
      const double c = (s[n] > 0) & (m > 0) ? now.anchor[n] - before.anchor[n] : 0, held = s[n] + m;
      const double t1 = s[kStrip + n] + s1 + m * c, t2 = s[2 * kStrip + n] + s2 + c * (2 * s1 + m * c);
      const double t3 = s[3 * kStrip + n] + s3 + c * (3 * s2 + c * (3 * s1 + m * c));
      const double t4 = s[4 * kStrip + n] + s4 + c * (4 * s3 + c * (6 * s2 + c * (4 * s1 + m * c)));
      to[n] = static_cast<scalar_t>(held >= least ? shape(held, t1, t2, t3, t4, kurtosis) : NAN);
    }
  }
}

Tensor rolling_shape(const Tensor& x_, int64_t window, int64_t min_periods, int64_t order) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_shape: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double least = double(std::max(order, min_periods));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_shape", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, kSums, [&](const WindowBlock& block, double* suffix) {
                      const int64_t at = block.panel * panels.size() + block.first;
                      shapes(from + at, to + at, panels.assets, block, rows, least, order == 4, suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_shape, "(Tensor x, SymInt window, SymInt min_periods, SymInt order) -> Tensor")
