// Gradients of statistics of rolling windows of (..., T, N), written once for the CPU and a GPU.
//
// Window t adds leading z^(order - 1) - linear z - constant, with z = x_s - mean_t, to dx_s of each of its rows s. The
// body of a statistic has
//   kOrder                          1 (constant weights) to 4
//   kReadsOutput                    whether the weights depend on the output y of the window
//   factors(n)                      of the weights of a window of n values: what depends on n alone
//   weights(factors, g, y, m2, m3)  of a window with gradient g and sums of powers m2, m3 about its mean
// over Number, which holds one column or several.
//
// Sums of powers of x give the weights of each window; the polynomials, expanded about an anchor, are summed over the
// windows that contain a row. Both are sums over rolling windows, of which the second runs backward in time. An anchor
// is a row that the windows contain, so that neither a level nor an outlier elsewhere costs digits.
#pragma once
#include "lanes.h"
#include "window_kernel.h"

namespace commodity {

// What a window adds to the gradients of its rows, which is zero if it is not `defined`.
template <typename Number>
struct WindowWeights {
  decltype((Number{} == Number{}) & (Number{} == Number{})) defined;
  Number leading, linear, constant, mean;
};

// The weights of a window and its mean, both from sum(k), the sum of the k-th powers of its values about an anchor.
template <typename Number, typename Body, typename Factors, typename Sum>
COMMODITY_INLINE WindowWeights<Number> weigh_window(const Body& body, const Factors& factors, const Number& g,
                                                    const Number& y, const Sum& sum) {
  Number mean = {}, m2 = {}, m3 = {};
  if constexpr (Body::kOrder > 1) mean = sum(1) * factors.inverse_n;
  if constexpr (Body::kOrder > 2) m2 = sum(2) - sum(1) * mean;
  if constexpr (Body::kOrder > 3) m3 = sum(3) - 3 * mean * sum(2) + 2 * sum(1) * mean * mean;
  const auto w = body.weights(factors, g, y, m2, m3);
  return {w.defined, w.defined ? w.leading : Number{}, w.defined ? w.linear : Number{},
          w.defined ? w.constant : Number{}, w.defined ? mean : Number{}};
}

// Calls take(k, coefficient) for the powers k of the polynomial about the anchor.
template <int order, typename Number, typename Take>
COMMODITY_INLINE void expand(const WindowWeights<Number>& w, const Take& take) {
  const Number mean = w.mean, square = mean * mean, zero = w.linear * mean - w.constant;
  if constexpr (order == 1) take(0, w.leading);
  if constexpr (order == 2) take(0, -w.leading * mean), take(1, w.leading);
  if constexpr (order == 3)
    take(0, square * w.leading + zero), take(1, -2 * mean * w.leading - w.linear), take(2, w.leading);
  if constexpr (order == 4) {
    take(0, -square * mean * w.leading + zero), take(1, 3 * square * w.leading - w.linear);
    take(2, -3 * w.leading * mean), take(3, w.leading);
  }
}

// Written out, since a loop inside of that over the columns keeps the compiler from vectorizing it.
template <int order>
COMMODITY_INLINE double evaluate(const double* coefficients, int64_t stride, double d) {
  if constexpr (order == 1)
    return coefficients[0];
  else
    return coefficients[0] + d * evaluate<order - 1>(coefficients + stride, stride, d);
}

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// Of `rows` rows, value(k) of the first one that is not missing.
template <typename Value>
COMMODITY_INLINE double find_anchor(int64_t rows, const Value& value) {
  for (int64_t k = 0; k < rows; ++k) {
    const double x = value(k);
    if (x == x) return x;
  }
  return 0;
}

// The weights and the mean of every window, a plane for each.
template <typename Body, typename scalar_t, int kWindows>
struct WeighWindows {
  static constexpr int kRows = kWindows, kOrder = Body::kOrder;
  Body body;
  FiniteValues<scalar_t> x;
  const scalar_t *grad, *y;
  double* planes;
  int64_t window, plane;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    const auto near = [&](int64_t k) { return x(panel, k < window ? first - k : first + 1 + k - window, n); };
    const double anchor = kOrder > 1 ? find_anchor(window + kRows - 1, near) : 0;
    const auto add = [&](Sums<double, kOrder>& sums, int64_t t) {
      const double d = x(panel, t, n) - anchor;
      double power = d == d ? 1 : 0;
#pragma unroll
      for (int k = 0; k < kOrder; ++k) sums.term[k] += power, power *= d == d ? d : 0;
    };
    for_each_window<kRows, Sums<double, kOrder>>(first, window, add, [&](int k, const Sums<double, kOrder>& sums) {
      if (!x.has_row(first + k)) return;
      const int64_t i = x.at(panel, first + k, n);
      const double output = Body::kReadsOutput ? read(y + i) : 0;
      const auto w = weigh_window<double>(body, body.factors(sums.term[0]), read(grad + i), output,
                                          [&](int power) { return sums.term[power]; });
      planes[i] = w.leading;
      if constexpr (kOrder > 1) planes[plane + i] = w.defined ? anchor + w.mean : 0;
      if constexpr (kOrder > 2) planes[2 * plane + i] = w.linear, planes[3 * plane + i] = w.constant;
    });
  }
};

// Sums of polynomials about the anchors of two parts of the windows.
template <int order>
struct PolynomialSums {
  double older[order] = {}, newer[order] = {};
  COMMODITY_INLINE PolynomialSums combine(const PolynomialSums& other) const {
    PolynomialSums both;
    for (int k = 0; k < order; ++k) both.older[k] = older[k], both.newer[k] = other.older[k];
    return both;
  }
};

// dx. Rows are numbered backward, from the last one: the windows that contain a row are the `window` rows up to it.
template <typename scalar_t, int order, int kWindows>
struct SumPolynomials {
  static constexpr int kRows = kWindows;
  FiniteValues<scalar_t> x;
  const double* planes;
  scalar_t* dx;
  int64_t window, plane;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    using Polynomials = PolynomialSums<order>;
    const auto row = [&](int64_t back) { return x.steps - 1 - back; };
    double older = 0, newer = 0;  // the later windows contain all rows, the others at least the earliest
    if constexpr (order > 1) {
      older = find_anchor(kRows, [&](int64_t k) { return x(panel, row(first + k), n); });
      newer = find_anchor(kRows, [&](int64_t k) { return x(panel, row(first + kRows - 1 - k), n); });
    }
    const auto add = [&](Polynomials& sums, int64_t back) {
      if (!x.has_row(back)) return;
      const double* at = planes + x.at(panel, row(back), n);
      WindowWeights<double> w{true, read(at), 0, 0, 0};
      if constexpr (order > 1) w.mean = read(at + plane) - (back > first ? newer : older);
      if constexpr (order > 2) w.linear = read(at + 2 * plane), w.constant = read(at + 3 * plane);
      expand<order>(w, [&](int k, double coefficient) { sums.older[k] += coefficient; });
    };
    for_each_window<kRows, Polynomials>(first, window, add, [&](int k, const Polynomials& sums) {
      if (!x.has_row(first + k)) return;
      const double value = x(panel, row(first + k), n);
      const double sum = evaluate<order>(sums.older, 1, value - older) + evaluate<order>(sums.newer, 1, value - newer);
      dx[x.at(panel, row(first + k), n)] = static_cast<scalar_t>(value == value ? sum : 0);
    });
  }
};

template <typename scalar_t, typename Body>
void sum_gradients(const Tensor& grad, const Tensor& x, const scalar_t* y, Tensor& dx, int64_t window,
                   const Body& body) {
  constexpr int order = Body::kOrder, kPlanes = order > 2 ? 4 : order;
  const Panels panels(x);
  const int64_t plane = x.numel();
  const Tensor memory = scratch(x, kPlanes * plane);
  double* planes = data_ptr<double>(memory);
  const auto values = finite_values<scalar_t>(x, panels);
  dispatch_rows<(order > 2 ? 4 : 8)>(window, [&]<int kRows>() {
    launch_windows(
        x, panels,
        WeighWindows<Body, scalar_t, kRows>{body, values, grad.const_data_ptr<scalar_t>(), y, planes, window, plane});
    launch_windows(x, panels,
                   SumPolynomials<scalar_t, order, kRows>{values, planes, data_ptr<scalar_t>(dx), window, plane});
  });
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

constexpr int64_t kTaskBlocks = 16;  // blocks per task; each task recomputes the polynomials of the block after them

// Both sums by the scheme of windows.h, one block of windows after the other, for a strip of columns: a row is in
// windows of two blocks, each with an anchor of its own. In complete windows the counts are known beforehand.
template <typename Body, typename scalar_t>
struct GradientStrip {
  static constexpr int kOrder = Body::kOrder;
  static constexpr int64_t kColumns = kOrder > 2 ? 32 : kStrip;  // the sums and polynomials of a window fit the cache
  const Body body;
  const scalar_t *grad, *x, *y;
  scalar_t* dx;
  const int64_t steps, stride, window, width;
  double *suffix, *polynomials[2], *anchor[2];  // suffix sums; coefficients by window and anchors of two blocks

  static int64_t memory(int64_t window) { return (3 * window * kOrder + 2) * kColumns; }

  inline bool block_finite(int64_t block) const {
    const int64_t rows = std::min(window, steps - block * window);
    return block < 0 || rows <= 0 || all_finite(x + block * window * stride, rows, stride, width);
  }

  // For each column a value that the windows of a block contain: the first of the block, or the last one before it.
  inline void find_anchor(int64_t begin, double* origin) const {
    std::fill_n(origin, kColumns, NAN);
    bool found = false;
    for (int64_t t = begin; !found && t < std::min(begin + window, steps); ++t) found = fill_anchor(t, origin);
    for (int64_t t = begin - 1; !found && t >= std::max<int64_t>(0, begin - window + 1); --t)
      found = fill_anchor(t, origin);
    for (int64_t n = 0; n < width; ++n) origin[n] = origin[n] == origin[n] ? origin[n] : 0;
  }
  // Returns whether all columns have one.
  inline bool fill_anchor(int64_t t, double* origin) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const double value = row[n] + (row[n] - row[n]);
      origin[n] = origin[n] == origin[n] ? origin[n] : value;
    }
    bool found = true;
    for (int64_t n = 0; n < width; ++n) found &= origin[n] == origin[n];
    return found;
  }

  template <bool complete>
  inline void add(double (&sums)[kOrder][kColumns], const double* origin, int64_t t) const {
    const scalar_t* row = x + t * stride;
    for (int64_t n = 0; n < width; ++n) {
      const bool finite = complete || row[n] - row[n] == 0;
      const double d = finite ? row[n] - origin[n] : 0;
      if (!complete) sums[0][n] += finite ? 1 : 0;
      if constexpr (kOrder > 1) sums[1][n] += d;
      if constexpr (kOrder > 2) sums[2][n] += d * d;
      if constexpr (kOrder > 3) sums[3][n] += d * d * d;
    }
  }

  // The polynomials of the windows that end in a block; zero after the last row.
  template <bool complete>
  inline void compute_block(int64_t begin, double* output, double* origin) const {
    constexpr bool needs_sums = kOrder > 1 || !complete;
    double sums[kOrder][kColumns] = {};
    if (kOrder > 1 && begin < steps) find_anchor(begin, origin);
    if (begin == 0) std::fill_n(suffix, kOrder * window * kColumns, 0.0);
    for (int64_t j = window - 1; needs_sums && begin > 0 && begin < steps && j >= 0; --j) {
      for_each_number([&](int64_t i) { suffix[kOrder * j * kColumns + i] = (&sums[0][0])[i]; });
      add<complete>(sums, origin, begin - window + j);
    }
    std::fill_n(&sums[0][0], kOrder * kColumns, 0.0);
    const int64_t rows = std::clamp<int64_t>(steps - begin, 0, window);
    std::fill_n(output + kOrder * rows * kColumns, kOrder * (window - rows) * kColumns, 0.0);
    for (int64_t j = 0; j < rows; ++j) {
      if (needs_sums) add<complete>(sums, origin, begin + j);
      compute_row<complete>((begin + j) * stride, double(begin ? window : j + 1), suffix + kOrder * j * kColumns, sums,
                            output + kOrder * j * kColumns);
    }
  }
  template <bool complete>
  inline void compute_row(int64_t row, double complete_count, const double* s, const double (&sums)[kOrder][kColumns],
                          double* __restrict output) const {
    using Number = Lanes::Number;
    const auto complete_factors = body.factors(Number{} + complete_count);
    const scalar_t *g = grad + row, *y_row = Body::kReadsOutput ? y + row : g;
    prefetch(g + kPrefetchRows * stride, width), prefetch(y_row + kPrefetchRows * stride, width);
    for (int64_t n = 0; n < width; n += Lanes::kMost) {
      const Lanes lanes{std::min(Lanes::kMost, width - n)};
      const auto sum = [&](int k) { return read_row<Number>(s + k * kColumns + n) + read_row<Number>(sums[k] + n); };
      const auto factors = complete ? complete_factors : body.factors(sum(0));
      const auto w = weigh_window<Number>(body, factors, lanes.load(g + n), lanes.load(y_row + n), sum);
      expand<kOrder>(w, [&](int k, const Number& coefficient) { write(coefficient, output + k * kColumns + n); });
    }
  }
  inline void compute_block(int64_t block, bool complete) const {
    const int64_t begin = block * window, i = block % 2;
    complete ? compute_block<true>(begin, polynomials[i], anchor[i])
             : compute_block<false>(begin, polynomials[i], anchor[i]);
  }

  // dx of one block, from the polynomials of this block and of the next one, which become prefix sums.
  inline void accumulate(int64_t begin, const double* current, const double* current_anchor, double* next,
                         const double* next_anchor) const {
    double total[kOrder * kColumns] = {};
    for (int64_t j = 0; j < window; ++j, next += kOrder * kColumns)
      for_each_number([&](int64_t i) {
        const double term = next[i];
        next[i] = total[i], total[i] += term;
      });
    std::fill_n(total, kOrder * kColumns, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      next -= kOrder * kColumns;
      for_each_number([&](int64_t i) { total[i] += current[kOrder * j * kColumns + i]; });
      if (begin + j >= steps) continue;
      const scalar_t* row = x + (begin + j) * stride;
      scalar_t* output = dx + (begin + j) * stride;
      prefetch(output - kPrefetchRows * stride, width);
      evaluate_row(row, total, current_anchor, next, next_anchor, output);
    }
  }
  // A function of its own, since clang takes __restrict from parameters only; otherwise it runs the loop one by one.
  inline void evaluate_row(const scalar_t* row, const double* current, const double* current_anchor, const double* next,
                           const double* next_anchor, scalar_t* __restrict output) const {
    for (int64_t n = 0; n < width; ++n) {
      const double sum = evaluate<kOrder>(current + n, kColumns, row[n] - current_anchor[n]) +
                         evaluate<kOrder>(next + n, kColumns, row[n] - next_anchor[n]);
      output[n] = static_cast<scalar_t>(row[n] - row[n] == 0 ? sum : 0);
    }
  }
  // Calls visit(i) for the numbers of all terms of a row: in one loop of constant length if the strip is full.
  template <typename Visit>
  inline void for_each_number(const Visit& visit) const {
    for (int64_t i = 0; width == kColumns && i < kOrder * kColumns; ++i) visit(i);
    for (int64_t k = 0; width < kColumns && k < kOrder; ++k)
      for (int64_t i = k * kColumns; i < k * kColumns + width; ++i) visit(i);
  }

  // Blocks [first, last), backward in time, after the polynomials of block `last`. The functions are called in one
  // place each: everything is inlined.
  inline void run(int64_t first, int64_t last) const {
    bool finite = block_finite(last);
    for (int64_t block = last; block >= first; --block) {
      const bool previous_finite = block_finite(block - 1);
      const int i = block % 2;
      compute_block(block, finite && previous_finite);
      finite = previous_finite;
      if (block < last) accumulate(block * window, polynomials[i], anchor[i], polynomials[1 - i], anchor[1 - i]);
    }
  }
};

template <typename Strip>
COMMODITY_SIMD void run_strip(const Strip& strip, int64_t first, int64_t last) {
  strip.run(first, last);
}

template <typename scalar_t, typename Body>
void sum_gradients(const Tensor& grad, const Tensor& x, const scalar_t* y, Tensor& dx, int64_t window,
                   const Body& body) {
  using Strip = GradientStrip<Body, scalar_t>;
  constexpr int64_t width = Strip::kColumns;
  const Panels panels(x);
  if (x.numel() == 0) return;
  const scalar_t *grads = grad.const_data_ptr<scalar_t>(), *values = x.const_data_ptr<scalar_t>();
  scalar_t* output = dx.mutable_data_ptr<scalar_t>();
  const int64_t blocks = (panels.steps + window - 1) / window, tasks = (blocks + kTaskBlocks - 1) / kTaskBlocks;
  const int64_t strips = (panels.assets + width - 1) / width, channel = Strip::kOrder * window * width;
  parallel_for(0, panels.batch * strips * tasks, 1, [&](int64_t first_task, int64_t last_task) {
    const std::unique_ptr<double[]> memory(new double[Strip::memory(window)]());
    double *const suffix = memory.get(), *const anchors = suffix + 3 * channel;
    for (int64_t i = first_task; i < last_task; ++i) {
      const int64_t block = i % tasks * kTaskBlocks, column = i / tasks % strips * width;
      const int64_t at = i / tasks / strips * panels.size() + column;
      const Strip strip{body,
                        grads + at,
                        values + at,
                        y ? y + at : nullptr,
                        output + at,
                        panels.steps,
                        panels.assets,
                        window,
                        std::min(width, panels.assets - column),
                        suffix,
                        {suffix + channel, suffix + 2 * channel},
                        {anchors, anchors + width}};
      run_strip(strip, block, std::min(block + kTaskBlocks, blocks));
    }
  });
}

}  // namespace on_cpu
#endif

// The gradient of x, from that of the statistics of its windows and, where the body reads it, their output.
template <typename scalar_t, typename Body>
void window_gradient(const Tensor& grad, const Tensor& x, const scalar_t* y, Tensor& dx, int64_t window,
                     const Body& body) {
  sum_gradients<scalar_t>(grad, x, y, dx, clamp_window(Panels(x), window), body);
}

}  // namespace commodity
