// Statistics of rolling windows of (..., T, N), written once for the CPU and a GPU. A statistic says what a row adds to
// a sum, how one sum is appended to another, and what comes out of that of a window. The driver of each device visits
// the rows by its own scheme: the CPU by that of windows.h, with vectors of columns in registers, a GPU with a few
// windows per item, which in long windows append sums of chunks of rows.
#pragma once
#include <climits>

#include "kernel.h"
#if defined(COMMODITY_GPU)
#include "device_windows.h"
#else
#include "simd.h"
#include "windows.h"
#endif

namespace commodity {

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

template <typename Number, typename scalar_t>
COMMODITY_INLINE void write(const Number& x, scalar_t* to) {
  *to = static_cast<scalar_t>(x);
}

template <typename Number, typename scalar_t>
COMMODITY_INLINE Number read_row(const scalar_t* from) {
  return read(from);
}

COMMODITY_INLINE double root_of(double x) { return std::sqrt(x); }

template <typename Number>
using RowOf = int;

}  // namespace on_gpu
#else
inline namespace on_cpu {

template <typename Number>
struct Lane {
  using type = std::remove_cvref_t<decltype(Number{}[0])>;
};
template <typename Number>
  requires std::is_arithmetic_v<Number>
struct Lane<Number> {
  using type = Number;
};
template <typename Number>
using LaneOf = typename Lane<Number>::type;

// Row numbers, as wide as the numbers, so that a comparison of these selects among those.
template <typename Number>
using RowOfLane = std::conditional_t<sizeof(LaneOf<Number>) == 4, int32_t, int64_t>;
template <typename Number>
using RowOf = std::conditional_t<std::is_arithmetic_v<Number>, RowOfLane<Number>, Vec<RowOfLane<Number> > >;

template <typename Number>
COMMODITY_INLINE Number root_of(Number x) {
  square_root<LaneOf<Number> >(x);
  return x;
}

template <typename Number, typename scalar_t>
COMMODITY_INLINE Number read_row(const scalar_t* from) {
  Number x;
  load<LaneOf<Number> >(x, from);
  return x;
}

template <typename Number, typename scalar_t>
COMMODITY_INLINE void write(const Number& x, scalar_t* to) {
  store<LaneOf<Number> >(x, to);
}

}  // namespace on_cpu
#endif

// The settings of a statistic of the finite values of each window, which is NaN where there are fewer than `min_count`.
// A statistic has
//   Sum<Number>                     of some rows; Number holds one column or several
//     add<later>(x, t)              row t, later or earlier than all rows so far
//     check()                       optional: not finite if one of the values was not; else all values are tested
//     move(count, distance)         if anchored: from an anchor that is higher by `distance`
//     append(later)                 the sums of later rows
//   result(sum, count, t)           of the window that ends in row t
// and may write the result by its own store, with other_output(at) the address of a second one.
struct WindowStatistic {
  static constexpr int kVectors = 8;  // of columns at a time, on the CPU
  static constexpr int kRows = 16;    // the most windows of an item of a GPU
  static constexpr bool kSkipsMissing = true, kIntegers = false;
  static constexpr bool kAnchored = false;  // sums are of differences from a value of the window
  static constexpr double kMissing = 0;     // added for a missing value where there is no anchor
  template <typename scalar_t>
  using Number = double;  // to add in

  template <typename Number, typename scalar_t>
  COMMODITY_INLINE void store(auto defined, const Number& result, scalar_t* y, int64_t) const {
    write(defined ? result : Number{} + NAN, y);
  }
};

constexpr int64_t kLongWindow = 128;  // from here on a GPU adds sums of chunks

// A panel whose rows are `stride` apart: backward in time if it is negative. x and y point to its first row.
template <typename scalar_t>
struct WindowPanel {
  const scalar_t* x;
  scalar_t* y;
  int64_t stride, window;  // at most the rows of the panel
  int min_count;
  bool is_long;  // which does not depend on the number of rows
};

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// The first finite value in a direction of time. All sums of a chain have the same.
template <typename scalar_t, bool kUsed>
struct Anchor {
  double value = NAN;

  template <int direction>
  COMMODITY_INLINE void choose(const scalar_t* values, int count) {
    if (value == value) return;
    scalar_t anchor = NAN;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const scalar_t x = values[direction > 0 ? count - 1 - i : i];
      anchor = is_finite(x) ? x : anchor;
    }
    value = anchor;
  }
};
template <typename scalar_t>
struct Anchor<scalar_t, false> {
  template <int direction>
  COMMODITY_INLINE void choose(const scalar_t*, int) {}
};

// Sums of rows of a column, and their number.
template <typename Statistic, typename scalar_t>
struct RowSums {
  using Number = typename Statistic::template Number<scalar_t>;
  using Anchor = on_gpu::Anchor<scalar_t, Statistic::kAnchored>;
  typename Statistic::template Sum<Number> sum;
  int count = 0;

  template <bool later>
  COMMODITY_INLINE void add(const Anchor& anchor, scalar_t x, int t) {
    if constexpr (Statistic::kSkipsMissing) {
      const bool valid = is_finite(x);
      count += valid;
      if constexpr (Statistic::kAnchored)
        sum.template add<later>(valid ? x - anchor.value : 0, t);
      else
        sum.template add<later>(valid ? Number(x) : Number(Statistic::kMissing), t);
    } else {
      sum.template add<later>(Number(x), t);
    }
  }
  // Adds the rows [t, end), of which the first is at `address`. Loads come before the sums that need them, since a load
  // takes longer than all additions.
  COMMODITY_INLINE void add_later(Anchor& anchor, const scalar_t* address, int64_t stride, int t, int end) {
    constexpr int kAtOnce = 8;
    constexpr scalar_t outside = Statistic::kSkipsMissing ? std::numeric_limits<scalar_t>::quiet_NaN() : 0;
    scalar_t values[kAtOnce];
    for (; t + kAtOnce <= end; t += kAtOnce) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i, address += stride) values[i] = read(address);
      anchor.template choose<1>(values, kAtOnce);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) add<true>(anchor, values[i], t + i);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, address += stride) values[i] = i < end - t ? read(address) : outside;
    anchor.template choose<1>(values, kAtOnce);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) add<true>(anchor, values[i], t + i);
  }
  COMMODITY_INLINE void add_later(Anchor& anchor, RowSums other, const Anchor& other_anchor) {
    if constexpr (Statistic::kAnchored) {
      if (!other.count) return;
      if (!count) anchor = other_anchor;
      if (other_anchor.value != anchor.value) other.sum.move(double(other.count), other_anchor.value - anchor.value);
    }
    sum.append(other.sum), count += other.count;
  }
};

constexpr int kChunkRows = 16;

// The sums of every chunk of kChunkRows rows.
template <typename Statistic, typename scalar_t>
struct SumChunks {
  static constexpr int kRows = kChunkRows;
  using Sums = RowSums<Statistic, scalar_t>;
  struct Total {
    Sums sums;
    [[no_unique_address]] typename Sums::Anchor anchor;
  };
  WindowPanel<scalar_t> in;
  int64_t steps, assets;
  Total* totals;  // (panels, steps / kChunkRows, assets), of whole chunks

  COMMODITY_INLINE int64_t at(int64_t panel, int64_t n, int64_t chunk) const {
    return (panel * (steps / kChunkRows) + chunk) * assets + n;
  }
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    if (first + kChunkRows > steps) return;
    const int t = static_cast<int>(first);
    Total total;
    total.sums.add_later(total.anchor, in.x + panel * steps * assets + n + first * in.stride, in.stride, t,
                         t + kChunkRows);
    totals[at(panel, n, first / kChunkRows)] = total;
  }
};

// Up to kWindows windows that end in consecutive rows of a column. The rows that all of them share are summed once;
// window k adds the last kRows - 1 - k of those before them and the first k of those after them.
template <typename Statistic, typename scalar_t, int kWindows>
struct WindowsOfColumn {
  static_assert(Statistic::kVectors > 0);  // of the CPU
  static constexpr int kRows = kWindows;
  using Sums = RowSums<Statistic, scalar_t>;
  Statistic statistic;
  SumChunks<Statistic, scalar_t> chunks;  // with totals if they are used

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first_) const {
    const auto& in = chunks.in;
    const int64_t steps = chunks.steps, assets = chunks.assets;
    constexpr scalar_t outside = Statistic::kSkipsMissing ? std::numeric_limits<scalar_t>::quiet_NaN() : 0;
    const int64_t stride = in.stride;
    const int first = static_cast<int>(first_), oldest = first - static_cast<int>(in.window) + 1;
    const int inside = static_cast<int>(steps - first < kRows ? steps - first : kRows);
    const scalar_t* const column = in.x + panel * steps * assets + n;
    scalar_t before[kRows], after[kRows];
    const scalar_t* address = column + oldest * stride;
#pragma unroll
    for (int k = 0; k < kRows - 1; ++k, address += stride) before[k] = oldest + k >= 0 ? read(address) : outside;
    address = column + first * stride;
#pragma unroll
    for (int k = 1; k < kRows; ++k) {
      address += stride;
      after[k - 1] = k < inside ? read(address) : outside;
    }
    Sums suffix[kRows], rows{}, prefix{};
    typename Sums::Anchor older{};
    int t = oldest + kRows - 1 > 0 ? oldest + kRows - 1 : 0;
    int chunk = (t + kChunkRows - 1) / kChunkRows;
    const int last_chunk = chunks.totals ? first / kChunkRows : 0;
    if (chunk < last_chunk) {
      rows.add_later(older, column + t * stride, stride, t, chunk * kChunkRows);
#pragma unroll 4
      for (; chunk < last_chunk; ++chunk) {
        const auto total = chunks.totals[chunks.at(panel, n, chunk)];
        rows.add_later(older, total.sums, total.anchor);
      }
      t = chunk * kChunkRows;
    }
    rows.add_later(older, column + t * stride, stride, t, first + 1);
    auto newer = older;
    suffix[kRows - 1] = rows;
    older.template choose<-1>(before, kRows - 1);
#pragma unroll
    for (int k = kRows - 2; k >= 0; --k) {
      rows.template add<false>(older, before[k], oldest + k);
      suffix[k] = rows;
    }
    newer.template choose<1>(after, kRows - 1);
    int64_t at = panel * steps * assets + n + first * stride;
#pragma unroll
    for (int k = 0; k < kRows; ++k, at += stride) {
      if (k > 0) prefix.template add<true>(newer, after[k - 1], first + k);
      auto sums = suffix[k];
      auto anchor = older;
      sums.add_later(anchor, prefix, newer);
      const auto result = statistic.result(sums.sum, double(sums.count), first + k);
      if (k < inside) statistic.store(!Statistic::kSkipsMissing || sums.count >= in.min_count, result, in.y + at, at);
    }
  }
};

template <typename scalar_t, typename Statistic>
void roll_panels(const Tensor& x, const Panels& panels, const WindowPanel<scalar_t>& in, const Statistic& statistic) {
  SumChunks<Statistic, scalar_t> chunks{in, panels.steps, panels.assets, nullptr};
  using Total = typename SumChunks<Statistic, scalar_t>::Total;
  std::optional<Tensor> memory;
  if (in.is_long) {
    const int64_t totals = panels.batch * panels.assets * (panels.steps / kChunkRows);
    memory = scratch(x, (totals * sizeof(Total) + sizeof(double) - 1) / sizeof(double));
    chunks.totals = data_ptr<Total>(*memory);
    launch_windows(x, panels, chunks);
  }
  dispatch_rows<Statistic::kRows>(in.window, [&]<int kRows>() {
    launch_windows(x, panels, WindowsOfColumn<Statistic, scalar_t, kRows>{statistic, chunks});
  });
}

// Calls body.operator()<Number>(panel, n, first) for every Body::kRows-th row of every column.
template <typename Body>
struct ColumnItem {
  static constexpr int kRows = Body::kRows;
  Body body;
  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t first) const {
    body.template operator()<typename Body::Number>(panel, n, first);
  }
};

// The rows of an item, whose values and two counts of each fit in the registers.
template <typename scalar_t>
constexpr int kItemRows = 64 / sizeof(scalar_t);

template <typename Body>
void for_each_few_rows(const Tensor& x, const Panels& panels, const Body& body) {
  launch_windows(x, panels, ColumnItem<Body>{body});
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

// The rows of a walk through time. If all values are `complete`, none is tested or counted. The anchor is the first row
// of the block, which all of its windows contain, or, where that is missing, the first value of the walk.
template <typename Statistic, typename Number, bool complete>
struct WindowWalk {
  using Count = std::conditional_t<sizeof(LaneOf<Number>) == 4, RowOf<Number>, Number>;
  typename Statistic::template Sum<Number> sum;
  Count count = {};
  Number anchor = {};
  decltype(Number{} == Number{}) has_anchor = {};

  template <typename scalar_t>
  COMMODITY_INLINE void start(const scalar_t* row) {
    if constexpr (Statistic::kAnchored) {
      const Number x = read_row<Number>(row);
      has_anchor = x - x == 0;
      anchor = complete ? x : has_anchor ? x : Number{};
    }
  }

  template <bool later, typename scalar_t>
  COMMODITY_INLINE void add(const scalar_t* row, int64_t t) {
    Number x = read_row<Number>(row);
    if constexpr (!complete) {
      const auto valid = x - x == 0;
      count += valid ? Count{} + 1 : Count{};
      if constexpr (Statistic::kAnchored) {
        anchor = valid & (has_anchor == 0) ? x : anchor;
        has_anchor |= valid;
      }
      // not a difference of zero, which the compiler would fold into products that are then rounded differently
      x = valid ? x : Statistic::kAnchored ? anchor : Number{} + LaneOf<Number>(Statistic::kMissing);
    }
    if constexpr (Statistic::kAnchored) x -= anchor;
    sum.template add<later>(x, static_cast<RowOfLane<Number> >(t));
  }

  // Whether all values were finite.
  COMMODITY_INLINE bool check() const {
    LaneOf<Number> lanes[sizeof(Number) / sizeof(LaneOf<Number>)];
    write(sum.check(), lanes);
    bool finite = true;
    for (const auto x : lanes) finite &= x - x == 0;
    return finite;
  }
};

// Whether all values of the walks were finite.
template <typename Walk, int kVectors>
COMMODITY_INLINE bool check_walks(const Walk (&walks)[kVectors]) {
  bool finite = true;
  COMMODITY_UNROLL
  for (int v = 0; v < kVectors; ++v) finite &= walks[v].check();
  return finite;
}

// The windows that end in a block, for kVectors vectors of columns whose first row of the block is at `at`. The first
// columns of a block prefetch whole rows of it. Returns false, with a useless result, if `complete` is wrong.
template <bool complete, typename Number, int kVectors, typename Statistic, typename scalar_t>
inline bool roll_columns(const Statistic& statistic, const WindowPanel<scalar_t>& in, const WindowBlock& block,
                         int64_t at, int64_t prefetched, void* memory) {
  constexpr bool kChecks = complete && Statistic::kSkipsMissing;
  constexpr int64_t kWidth = sizeof(Number) / sizeof(LaneOf<Number>);
  using Walk = WindowWalk<Statistic, Number, complete>;
  auto* const sums = static_cast<decltype(Walk::sum)*>(memory);
  auto* const counts = reinterpret_cast<typename Walk::Count*>(sums + in.window * kVectors);
  Walk previous[kVectors], current[kVectors];  // in registers, as every loop over them is written out
  COMMODITY_UNROLL
  for (int v = 0; v < kVectors; ++v) previous[v].start(in.x + at + v * kWidth), current[v] = previous[v];
  for (int64_t j = in.window - 1; j >= 0; --j) {
    const int64_t back = in.window - j, row = at - back * in.stride;
    COMMODITY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[j * kVectors + v] = previous[v].sum;
      if constexpr (!complete) counts[j * kVectors + v] = previous[v].count;
      if (block.begin > 0) previous[v].template add<false>(in.x + row + v * kWidth, block.begin - back);
    }
  }
  if constexpr (kChecks)
    if (!check_walks(previous)) return false;
  for (int64_t j = 0, t = block.begin; t < block.end; ++j, ++t, at += in.stride) {
    if (t + kPrefetchRows < block.end) {
      prefetch(in.x + at + kPrefetchRows * in.stride, prefetched);
      prefetch(in.y + at + kPrefetchRows * in.stride, prefetched);
      if constexpr (requires { statistic.other_output(at); })
        prefetch(statistic.other_output(at + kPrefetchRows * in.stride), prefetched);
    }
    COMMODITY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int64_t here = at + v * kWidth;
      auto sum = sums[j * kVectors + v];
      current[v].template add<true>(in.x + here, t);
      auto newer = current[v].sum;
      if constexpr (complete) {
        const double count = double(block.begin ? in.window : j + 1);
        sum.append(newer);
        const auto result = statistic.result(sum, count, static_cast<RowOfLane<Number> >(t));
        statistic.store(!Statistic::kSkipsMissing || count >= in.min_count, result, in.y + here, here);
      } else {
        const auto older_count = counts[j * kVectors + v], newer_count = current[v].count;
        if constexpr (Statistic::kAnchored)
          newer.move(newer_count,
                     (older_count > 0) & (newer_count > 0) ? current[v].anchor - previous[v].anchor : Number{});
        const auto count = older_count + newer_count;
        sum.append(newer);
        const auto result = statistic.result(sum, count, static_cast<RowOfLane<Number> >(t));
        statistic.store(count >= LaneOf<typename Walk::Count>(in.min_count), result, in.y + here, here);
      }
    }
  }
  if constexpr (kChecks) return check_walks(current);
  return true;
}

// Sums that do not show whether a value is missing are counted at once.
template <typename Number, int kVectors, typename Statistic, typename scalar_t>
inline void roll_columns(const Statistic& statistic, const WindowPanel<scalar_t>& in, const WindowBlock& block,
                         int64_t at, int64_t prefetched, void* memory) {
  constexpr bool kShows = requires(typename Statistic::template Sum<Number> sum) { sum.check(); };
  if constexpr (!Statistic::kSkipsMissing || kShows)
    if (roll_columns<true, Number, kVectors>(statistic, in, block, at, prefetched, memory)) return;
  if constexpr (Statistic::kSkipsMissing)
    roll_columns<false, Number, kVectors>(statistic, in, block, at, prefetched, memory);
}

template <typename Body>
COMMODITY_SIMD void visit_rows(const Body& body, int64_t panel, int64_t n, int64_t first) {
  body.template operator()<Vec<typename Body::Number> >(panel, n, first);
}

template <typename scalar_t>
constexpr int kItemRows = 8;

// Calls body.operator()<Number>(panel, n, first) for every Body::kRows-th row of every vector of columns, the last of
// which may cover columns for a second time, with the same bits. A panel of fewer columns is copied to one of whole
// vectors.
template <typename Body>
void for_each_few_rows(const Tensor&, const Panels& panels, const Body& body) {
  constexpr int64_t width = Simd<typename Body::Number>::count;
  if (panels.assets >= width)
    return for_each_window_block<double>(panels, Body::kRows, 0, [&](const WindowBlock& block, double*) {
      for (int64_t n = 0; n < block.width; n += width)
        visit_rows(body, block.panel, std::min(block.first + n, panels.assets - width), block.begin);
    });
  parallel_for(0, panels.batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<typename Body::Number> x(panels.steps * width), y(panels.steps * width);
    Body padded = body;
    padded.x = x.data(), padded.y = y.data(), padded.assets = width;
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * panels.size();
      for (int64_t t = 0; t < panels.steps; ++t)
        std::copy_n(body.x + first + t * panels.assets, panels.assets, &x[t * width]);
      for (int64_t t = 0; t < panels.steps; t += Body::kRows) visit_rows(padded, 0, 0, t);
      for (int64_t t = 0; t < panels.steps; ++t)
        std::copy_n(&y[t * width], panels.assets, body.y + first + t * panels.assets);
    }
  });
}

// A few vectors of columns at a time, then one, which may cover columns for a second time, with the same bits. Single
// columns only where the panel has fewer than a vector.
template <typename Statistic, typename scalar_t>
COMMODITY_SIMD void roll_block(const Statistic& statistic, const WindowPanel<scalar_t>& in, const WindowBlock& block,
                               int64_t at, void* memory) {
  using number_t = typename Statistic::template Number<scalar_t>;
  constexpr int64_t one = Simd<number_t>::count, many = one * Statistic::kVectors;
  int64_t n = 0;
  for (; n + many <= block.width; n += many)
    roll_columns<Vec<number_t>, Statistic::kVectors>(statistic, in, block, at + n, n == 0 ? block.width : 0, memory);
  for (; n < block.width && (block.width >= one || block.first > 0); n += one)
    roll_columns<Vec<number_t>, 1>(statistic, in, block, at + std::min(n, block.width - one), n == 0 ? block.width : 0,
                                   memory);
  for (; n < block.width; ++n) roll_columns<number_t, 1>(statistic, in, block, at + n, 1, memory);
}

struct alignas(64) CacheLine {
  char bytes[64];
};

// A panel of fewer columns than a vector has, copied to one of whole vectors: in single columns the compiler would fuse
// other products.
template <typename scalar_t, typename Statistic>
void roll_padded(const Panels& panels, const WindowPanel<scalar_t>& in, const Statistic& statistic, int64_t lines) {
  constexpr int64_t width = Simd<typename Statistic::template Number<scalar_t> >::count;
  const int64_t steps = panels.steps, assets = panels.assets;
  parallel_for(0, panels.batch, std::max<int64_t>(1, kGrain / (steps * width + 1)), [&](int64_t begin, int64_t end) {
    std::vector<scalar_t> x(steps * width), y(steps * width);
    AlignedVector<CacheLine> memory(lines * in.window);
    const WindowPanel<scalar_t> padded{x.data(), y.data(), width, in.window, in.min_count, in.is_long};
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * panels.size();
      for (int64_t t = 0; t < steps; ++t) std::copy_n(in.x + first + t * in.stride, assets, &x[t * width]);
      for (int64_t t = 0; t < steps; t += in.window)
        roll_block(statistic, padded, WindowBlock{0, 0, width, t, std::min(t + in.window, steps)}, t * width,
                   memory.data());
      for (int64_t t = 0; t < steps; ++t) std::copy_n(&y[t * width], assets, in.y + first + t * in.stride);
    }
  });
}

template <typename scalar_t, typename Statistic>
void roll_panels(const Tensor&, const Panels& panels, const WindowPanel<scalar_t>& in, const Statistic& statistic) {
  using Number = Vec<typename Statistic::template Number<scalar_t> >;
  using Walk = WindowWalk<Statistic, Number, false>;
  constexpr int64_t lines = Statistic::kVectors * (sizeof(Walk::sum) + sizeof(Walk::count)) / sizeof(CacheLine) + 1;
  if constexpr (!requires { statistic.other_output(0); })
    if (panels.assets < Simd<typename Statistic::template Number<scalar_t> >::count)
      return roll_padded(panels, in, statistic, lines);
  for_each_window_block<CacheLine>(
      panels, in.window, lines,
      [&](const WindowBlock& block, CacheLine* memory) {
        const int64_t at = block.panel * panels.size() + block.begin * in.stride + block.first;
        roll_block(statistic, in, block, at, memory);
      },
      1);
}

}  // namespace on_cpu
#endif

template <typename scalar_t, typename Statistic>
void roll_panels(const Tensor& x, Tensor& y, int64_t window, int64_t min_count, bool ahead,
                 const Statistic& statistic) {
  const Panels panels(x);
  const int64_t first = ahead ? panels.size() - panels.assets : 0;
  roll_panels(
      x, panels,
      WindowPanel<scalar_t>{x.const_data_ptr<scalar_t>() + first, y.mutable_data_ptr<scalar_t>() + first,
                            ahead ? -panels.assets : panels.assets, clamp_window(panels, window),
                            static_cast<int>(std::clamp<int64_t>(min_count, INT_MIN, INT_MAX)), window >= kLongWindow},
      statistic);
}

// The statistic of the last `window` rows, or of this row and the following window - 1 (`ahead`).
template <typename Statistic>
Tensor roll(const char* operation, const Tensor& x_, int64_t window, int64_t min_count, const Statistic& statistic,
            bool ahead = false) {
  STD_TORCH_CHECK(x_.dim() >= 2 && window >= 1, operation, ": x (..., T, N), window >= 1");
  const Tensor x = contiguous(x_);
  Tensor y = new_output(x, x.sizes());
  const auto run = [&]<typename scalar_t>() { roll_panels<scalar_t>(x, y, window, min_count, ahead, statistic); };
  if constexpr (Statistic::kIntegers)
    if (x.scalar_type() == torch::headeronly::ScalarType::Long) return run.template operator()<int64_t>(), y;
  dispatch(operation, x, run);
  return y;
}

}  // namespace commodity
