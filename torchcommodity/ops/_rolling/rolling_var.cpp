// Rolling variance, or its square root, of the finite values in each window of (..., T, N). windows.h explains the
// scheme: suffix sums of the previous block plus a running total.
//
// Sums are taken of differences from an anchor inside the window: the first row of the block, which all of its windows
// contain, or, where that is missing, the last value of the suffix and the first of the running total. So neither a
// high level nor values that have left the window cost digits, and the variance of a constant is exactly zero.
#include "lanes.h"

using namespace commodity;

namespace {

// Per column: the number of values, the anchor, and the sums of differences and of their squares. If all values are
// `complete`, nothing is counted; a value that is not finite then makes the sums infinite or NaN. A missing value adds
// x - anchor with x = anchor rather than a constant zero: the compiler would fold a constant into the square, which is
// then rounded differently than in the variant for complete windows.
template <bool complete, typename Vector, int kVectors>
struct Sums {
  using Row = Lanes<Vector, kVectors>;
  Row count, has_anchor, anchor, sum, squares;

  template <typename scalar_t>
  inline explicit Sums(const scalar_t* first) : anchor(Row::read(first)) {
    for (int v = 0; v < kVectors && !complete; ++v) {
      const auto finite = anchor.value[v] - anchor.value[v] == 0;
      has_anchor.value[v] = finite ? Vector{} + 1 : Vector{};
      anchor.value[v] = finite ? anchor.value[v] : Vector{};
    }
  }

  template <typename scalar_t>
  inline void add(const scalar_t* row) {
    const Row next = Row::read(row);
    for (int v = 0; v < kVectors; ++v) {
      const Vector x = next.value[v];
      Vector value = x, origin = anchor.value[v];
      if (!complete) {
        const auto finite = x - x == 0;
        const auto first = (has_anchor.value[v] == 0) & finite;
        origin = first ? x : origin;
        value = finite ? x : origin;
        anchor.value[v] = origin;
        has_anchor.value[v] = finite ? Vector{} + 1 : has_anchor.value[v];
        count.value[v] += finite ? Vector{} + 1 : Vector{};
      }
      const Vector d = value - origin;
      sum.value[v] += d, squares.value[v] += d * d;
    }
  }
};

// The windows that end in a block, for one group of columns. Returns false, with a useless result, if `complete` is
// wrong.
template <bool complete, typename Vector, int kVectors, typename scalar_t>
inline bool rolling_var_group(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block, int64_t window,
                              double min_periods, double ddof, bool root, double* suffix) {
  using Row = Lanes<Vector, kVectors>;
  Sums<complete, Vector, kVectors> previous(x + block.begin * stride), current = previous;
  for (int64_t j = window - 1; j >= 0; --j) {
    double* row = suffix + 3 * j * kLanes;
    previous.sum.write(row), previous.squares.write(row + kLanes);
    if (!complete) previous.count.write(row + 2 * kLanes);
    if (block.begin > 0) previous.add(x + (block.begin - window + j) * stride);
  }
  if (complete && !previous.squares.finite()) return false;
  for (int64_t j = 0, t = block.begin; t < block.end; ++j, ++t) {
    if (t + kPrefetchRows < block.end) {
      __builtin_prefetch(x + (t + kPrefetchRows) * stride);
      __builtin_prefetch(y + (t + kPrefetchRows) * stride, 1);
    }
    current.add(x + t * stride);
    const double* row = suffix + 3 * j * kLanes;
    const Row sum = Row::read(row), squares = Row::read(row + kLanes);
    const Row count = complete ? Row{} : Row::read(row + 2 * kLanes);
    const double all = double(block.begin ? window : j + 1), share = 1 / all, unbiased_share = 1 / (all - ddof);
    Row variance;
    for (int v = 0; v < kVectors; ++v) {
      Vector window_count = Vector{} + all, distance = {}, shift = {};
      if (!complete) {
        const auto two_anchors = (count.value[v] > 0) & (current.count.value[v] > 0);
        distance = two_anchors ? current.anchor.value[v] - previous.anchor.value[v] : Vector{};
        shift = current.count.value[v] * distance;
        window_count = count.value[v] + current.count.value[v];
      }
      const Vector total = sum.value[v] + current.sum.value[v] + shift;
      const Vector square = squares.value[v] + current.squares.value[v] + distance * (2 * current.sum.value[v] + shift);
      // Only one product is subtracted: with two, the compiler might fuse different ones in the two variants.
      const Vector weight = complete ? Vector{} + share : 1 / window_count;
      const Vector scale = complete ? Vector{} + unbiased_share : 1 / (window_count - ddof);
      const Vector value = (square - total * (total * weight)) * scale;
      const auto defined = (window_count >= min_periods) & (window_count > ddof);
      variance.value[v] = defined ? (value > 0 ? value : Vector{}) : Vector{} + NAN;
    }
    if (root) variance.square_root();
    variance.write(y + t * stride);
  }
  return !complete || current.squares.finite();
}

template <typename scalar_t>
COMMODITY_SIMD void rolling_var_block(const scalar_t* x, scalar_t* y, int64_t stride, const WindowBlock& block,
                                      int64_t window, double min_periods, double ddof, bool root, double* suffix) {
  for_each_group(block.width, [&]<typename Vector, int k>(int64_t n) {
    const auto run = [&]<bool complete>() {
      return rolling_var_group<complete, Vector, k>(x + n, y + n, stride, block, window, min_periods, ddof, root,
                                                    suffix);
    };
    if (!run.template operator()<true>()) run.template operator()<false>();
  });
}

Tensor rolling_var(const Tensor& x_, int64_t window, std::optional<int64_t> min_periods, int64_t ddof, bool root) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, "rolling_var: x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  const int64_t rows = clamp_window(panels, window);
  THO_DISPATCH_V2(x.scalar_type(), "rolling_var", AT_WRAP([&] {
                    const scalar_t* input = x.const_data_ptr<scalar_t>();
                    scalar_t* output = y.mutable_data_ptr<scalar_t>();
                    for_each_window_block<double>(
                        panels, rows, 3,
                        [&](const WindowBlock& block, double* suffix) {
                          const int64_t offset = block.panel * panels.size() + block.first;
                          rolling_var_block(input + offset, output + offset, panels.assets, block, rows,
                                            double(std::max<int64_t>(1, min_periods.value_or(window))), double(ddof),
                                            root, suffix);
                        },
                        kLanes);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(rolling_var,
                   "(Tensor x, SymInt window, SymInt? min_periods=None, SymInt ddof=1, bool root=False) -> Tensor")
