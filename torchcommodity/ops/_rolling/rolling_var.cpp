// Rolling variance, or its square root, of the finite values in each window of (..., T, N). windows.h explains the
// scheme: suffix sums of the previous block plus a running total.
//
// Sums are taken of differences from an anchor inside the window: the first row of the block, which all of its windows
// contain, or, where that is missing, the last value of the suffix and the first of the running total. So neither a
// high level nor values that have left the window cost digits, and the variance of a constant is exactly zero.
#include "windows.h"

using namespace commodity;

namespace {

// Per column: the number of values, the anchor, and the sums of differences and of their squares. A missing value adds
// x - anchor with x = anchor rather than a constant zero: the compiler would fold a constant into the square, which is
// then rounded differently than in the variant for complete windows.
template <bool complete>
struct Sums {
  double count[kStrip] = {}, has_anchor[kStrip], anchor[kStrip], sum[kStrip] = {}, squares[kStrip] = {};

  template <typename scalar_t>
  inline explicit Sums(const scalar_t* first, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      has_anchor[n] = first[n] - first[n] == 0 ? 1 : 0;
      anchor[n] = has_anchor[n] ? first[n] : 0;
    }
  }
  template <typename scalar_t>
  inline void add(const scalar_t* row, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      const double x = row[n];
      const bool finite = complete || x - x == 0;
      const double origin = !complete && (has_anchor[n] == 0) & finite ? x : anchor[n];
      const double d = (finite ? x : origin) - origin;
      if (!complete) {
        anchor[n] = origin;
        has_anchor[n] = finite ? 1 : has_anchor[n];
        count[n] += finite ? 1 : 0;
      }
      sum[n] += d, squares[n] += d * d;
    }
  }
};

template <bool complete, typename scalar_t>
inline void rolling_var_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                              int64_t window, double min_periods, double ddof, bool root, double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  if (block.begin == 0) std::fill_n(suffix, 3 * rows * kStrip, 0.0);
  Sums<complete> previous(x + block.begin * stride, width), current = previous;
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    double* row = suffix + 3 * j * kStrip;
    if (!complete) std::copy_n(previous.count, width, row);
    std::copy_n(previous.sum, width, row + kStrip);
    std::copy_n(previous.squares, width, row + 2 * kStrip);
    previous.add(x + (block.begin - window + j) * stride, width);
  }
  for (int64_t j = 0; j < rows; ++j) {
    current.add(x + (block.begin + j) * stride, width);
    scalar_t* output = y + (block.begin + j) * stride;
    if (j + kPrefetchRows < rows) prefetch(output + kPrefetchRows * stride, width);
    const double *count = suffix + 3 * j * kStrip, *sum = count + kStrip, *squares = sum + kStrip;
    const double complete_count = double(block.begin ? window : j + 1);
    double variance[kStrip];
    for (int64_t n = 0; n < width; ++n) {
      const bool two_anchors = !complete && (count[n] > 0) & (current.count[n] > 0);
      const double distance = two_anchors ? current.anchor[n] - previous.anchor[n] : 0;
      const double window_count = complete ? complete_count : count[n] + current.count[n];
      const double shift = complete ? 0 : current.count[n] * distance, total = sum[n] + current.sum[n] + shift;
      const double square = squares[n] + current.squares[n] + distance * (2 * current.sum[n] + shift);
      // Only one product is subtracted: with two, the compiler might fuse different ones in the two variants.
      const double value = (square - total * (total * (1 / window_count))) * (1 / (window_count - ddof));
      const bool defined = (window_count >= min_periods) & (window_count > ddof);
      variance[n] = defined ? (value > 0 ? value : 0) : NAN;
    }
    if (root)
      for (int64_t n = 0; n < width; ++n) output[n] = static_cast<scalar_t>(std::sqrt(variance[n]));
    else
      for (int64_t n = 0; n < width; ++n) output[n] = static_cast<scalar_t>(variance[n]);
  }
}

template <typename scalar_t>
COMMODITY_SIMD void rolling_var_block(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block,
                                      int64_t window, double min_periods, double ddof, bool root, double* suffix) {
  if (all_finite(x, stride, block, window))
    rolling_var_block<true>(x, y, stride, block, window, min_periods, ddof, root, suffix);
  else
    rolling_var_block<false>(x, y, stride, block, window, min_periods, ddof, root, suffix);
}

Tensor rolling_var(const Tensor& x_, int64_t window, int64_t min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_var", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 3, [&](const WindowBlock& block, double* suffix) {
                      const int64_t offset = block.panel * panels.size() + block.first;
                      rolling_var_block(input + offset, output + offset, panels.assets, block, rows,
                                        double(std::max<int64_t>(1, min_periods)), double(ddof), root, suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_var, "(Tensor x, SymInt window, SymInt min_periods, SymInt ddof, bool root) -> Tensor")
