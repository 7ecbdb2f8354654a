// The variance, or its root, of what is finite among the last `window` rows of (..., T, N).
//
// Values are taken against one that is in the window itself: the first row of the block, which all its windows hold;
// where it is missing, the last of the suffix and the first of the prefix. So neither a level nor what has left the
// window costs digits, and the variance of a constant is exactly zero.
#include "windows.h"

using namespace commodity;

namespace {

// Of each column: how many values, the one they are taken against once it is chosen, the sum of the differences and of
// their squares. A missing value stands on what it is taken against: a constant zero would be folded into the square,
// which then is rounded otherwise than where nothing is missing.
template <bool all>
struct Sums {
  double count[kStrip] = {}, chosen[kStrip], anchor[kStrip], sum[kStrip] = {}, squares[kStrip] = {};

  template <typename scalar_t>
  inline explicit Sums(const scalar_t* first, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      chosen[n] = first[n] - first[n] == 0 ? 1 : 0;
      anchor[n] = chosen[n] ? first[n] : 0;
    }
  }
  template <typename scalar_t>
  inline void add(const scalar_t* row, int64_t width) {
    for (int64_t n = 0; n < width; ++n) {
      const double x = row[n];
      const bool finite = all || x - x == 0;
      const double against = !all && (chosen[n] == 0) & finite ? x : anchor[n], d = (finite ? x : against) - against;
      if (!all) anchor[n] = against, chosen[n] = finite ? 1 : chosen[n], count[n] += finite ? 1 : 0;
      sum[n] += d, squares[n] += d * d;
    }
  }
};

template <bool all, typename scalar_t>
inline void variances_of_block(const scalar_t* x, scalar_t* __restrict y, int64_t stride, const WindowBlock& block,
                               int64_t window, double least, double ddof, bool root, double* __restrict suffix) {
  const int64_t rows = block.end - block.begin, width = block.width;
  if (block.begin == 0) std::fill_n(suffix, 3 * rows * kStrip, 0.0);
  Sums<all> before(x + block.begin * stride, width), now = before;
  for (int64_t j = window - 1; block.begin > 0 && j >= 0; --j) {
    double* to = suffix + 3 * j * kStrip;
    if (!all) std::copy_n(before.count, width, to);
    std::copy_n(before.sum, width, to + kStrip);
    std::copy_n(before.squares, width, to + 2 * kStrip);
    before.add(x + (block.begin - window + j) * stride, width);
  }
  for (int64_t j = 0; j < rows; ++j) {
    now.add(x + (block.begin + j) * stride, width);
    scalar_t* to = y + (block.begin + j) * stride;
    if (j + kPrefetchRows < rows) prefetch(to + kPrefetchRows * stride, width);
    const double *count = suffix + 3 * j * kStrip, *sum = count + kStrip, *squares = sum + kStrip;
    const double every = double(block.begin ? window : j + 1);
    double variance[kStrip];
    for (int64_t n = 0; n < width; ++n) {
      const bool both = !all && (count[n] > 0) & (now.count[n] > 0);
      const double apart = both ? now.anchor[n] - before.anchor[n] : 0, held = all ? every : count[n] + now.count[n];
      const double shift = all ? 0 : now.count[n] * apart, total = sum[n] + now.sum[n] + shift;
      const double square = squares[n] + now.squares[n] + apart * (2 * now.sum[n] + shift);
      // one product is taken off, never two: a compiler that fuses one of two need not choose the same in both variants
      const double spread = (square - total * (total * (1 / held))) * (1 / (held - ddof));
      variance[n] = (held >= least) & (held > ddof) ? (spread > 0 ? spread : 0) : NAN;
    }
    if (root)
      for (int64_t n = 0; n < width; ++n) to[n] = static_cast<scalar_t>(std::sqrt(variance[n]));
    else
      for (int64_t n = 0; n < width; ++n) to[n] = static_cast<scalar_t>(variance[n]);
  }
}

template <typename scalar_t>
COMMODITY_SIMD void variances(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block, int64_t window,
                              double least, double ddof, bool root, double* suffix) {
  if (all_finite(x, stride, block, window))
    variances_of_block<true>(x, y, stride, block, window, least, ddof, root, suffix);
  else
    variances_of_block<false>(x, y, stride, block, window, least, ddof, root, suffix);
}

Tensor rolling_var(const Tensor& x_, int64_t window, int64_t min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_var", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(panels, rows, 3, [&](const WindowBlock& block, double* suffix) {
                      const int64_t at = block.panel * panels.size() + block.first;
                      variances(from + at, to + at, panels.assets, block, rows,
                                double(std::max<int64_t>(1, min_periods)), double(ddof), root, suffix);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_var, "(Tensor x, SymInt window, SymInt min_periods, SymInt ddof, bool root) -> Tensor")
