// Rolling skewness (order 3) or excess kurtosis (order 4) of the finite values in each window of (..., T, N). windows.h
// explains the scheme: suffix sums of the previous block plus a running total.
//
// As in rolling_var.cpp, sums are taken of differences from an anchor inside the window: the last value of the suffix,
// and the first of the running total.
#include "windows.h"

using namespace commodity;

namespace {

constexpr int kSums = 5;  // the count, and the sums of the first four powers

struct PowerSums {
  double power[kSums][kStrip] = {}, anchor[kStrip] = {};

  template <typename scalar_t>
  inline void add(const scalar_t* row, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      const double x = row[n];
      const bool finite = x - x == 0;
      const double origin = power[0][n] == 0 && finite ? x : anchor[n], d = finite ? x - origin : 0, square = d * d;
      anchor[n] = origin, power[0][n] += finite ? 1 : 0;
      power[1][n] += d, power[2][n] += square, power[3][n] += square * d, power[4][n] += square * square;
    }
  }
};

// Unbiased skewness or excess kurtosis of n values whose sums of powers about any origin are s1 .. s4.
inline double standardized_moment(double n, double s1, double s2, double s3, double s4, bool kurtosis) {
  const double mean = s1 / n, m2 = s2 - s1 * mean;
  const double m3 = s3 - 3 * mean * s2 + 2 * s1 * mean * mean;
  const double m4 = s4 - 4 * mean * s3 + 6 * mean * mean * s2 - 3 * s1 * mean * mean * mean;
  const double skew = n * std::sqrt(n - 1) / (n - 2) * m3 / (m2 * std::sqrt(m2));
  const double kurt = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * m4 / (m2 * m2) - 3 * (n - 1));
  return m2 > 0 ? (kurtosis ? kurt : skew) : NAN;
}

template <typename scalar_t>
COMMODITY_SIMD void rolling_skew_kurt_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride,
                                            const WindowBlock& block, int64_t window, double min_periods, bool kurtosis,
                                            double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  if (block.begin == 0) std::fill_n(suffix, kSums * rows * kStrip, 0.0);
  PowerSums previous, current;
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    for (int k = 0; k < kSums; ++k) std::copy_n(previous.power[k], width, suffix + (kSums * j + k) * kStrip);
    previous.add(x + (block.begin - window + j) * stride, width);
  }
  for (int64_t j = 0; j < rows; ++j) {
    current.add(x + (block.begin + j) * stride, width);
    const double* s = suffix + kSums * j * kStrip;
    scalar_t* output = y + (block.begin + j) * stride;
    for (int64_t n = 0; n < width; ++n) {
      const double m = current.power[0][n], s1 = current.power[1][n], s2 = current.power[2][n];
      const double s3 = current.power[3][n], s4 = current.power[4][n];
      const double c = ((s[n] > 0) & (m > 0)) ? current.anchor[n] - previous.anchor[n] : 0, count = s[n] + m;
      const double t1 = s[kStrip + n] + s1 + m * c, t2 = s[2 * kStrip + n] + s2 + c * (2 * s1 + m * c);
      const double t3 = s[3 * kStrip + n] + s3 + c * (3 * s2 + c * (3 * s1 + m * c));
      const double t4 = s[4 * kStrip + n] + s4 + c * (4 * s3 + c * (6 * s2 + c * (4 * s1 + m * c)));
      const bool defined = count >= min_periods;
      output[n] = static_cast<scalar_t>(defined ? standardized_moment(count, t1, t2, t3, t4, kurtosis) : NAN);
    }
  }
}

Tensor rolling_skew_kurt(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, int64_t order) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1 && (order == 3 || order == 4),
                  "rolling_skew_kurt: x (..., T, N), window >= 1, order 3 or 4");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  const double min_count = double(std::max(order, min_periods.value_or(window)));
  THO_DISPATCH_V2(x.scalar_type(), "rolling_skew_kurt", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, kSums, [&](const WindowBlock& block, double* suffix) {
                      const int64_t offset = block.panel * panels.size() + block.first;
                      rolling_skew_kurt_block(input + offset, output + offset, panels.assets, block, rows, min_count,
                                              order == 4, suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_skew_kurt, "(Tensor x, SymInt window, SymInt? min_periods=None, SymInt order=3) -> Tensor")
