// highest, lowest, since_highest, since_lowest: window.h, with running maxima in place of sums. Minima are maxima of
// -x.
#include "primitives.h"
#include "window.h"

namespace commodity::series {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// A missing value stays in the maximum of every window that contains it.
inline double larger(double newer, double older) {
  const double maximum = newer > older ? newer : older;
  return missing(newer) ? newer : maximum;
}

// Planes: W values or suffix maxima, the maximum of the prefix; and the same of their row numbers, if `rows`. Of equal
// values the newest counts.
template <bool largest, bool rows, typename Width>
struct BlockMaxima {
  const int64_t window;
  const Width width;
  double* __restrict slots, * __restrict total, * __restrict slot_rows, * __restrict total_row;

  BlockMaxima(int64_t window, Width width, double* state)
      : window(window),
        width(width),
        slots(state),
        total(state + window * width),
        slot_rows(state + (rows ? window + 1 : 0) * width),
        total_row(slot_rows + window * width) {}

  void turn() {
    std::fill_n(total, width, kLowest);
    for (int64_t j = window - 1; j >= 0; --j) {
      double* __restrict slot = slots + j * width, * __restrict slot_row = slot_rows + j * width;
      for_columns(width, [&](int64_t n) {
        const double value = slot[n], maximum = total[n];
        slot[n] = maximum, total[n] = larger(value, maximum);
        if constexpr (rows) {
          const double row = slot_row[n];
          slot_row[n] = total_row[n], total_row[n] = value > maximum ? row : total_row[n];
        }
      });
    }
    std::fill_n(total, width, kLowest);
  }

  // take(i, n, maximum, row of the maximum)
  template <typename Take>
  void run(int64_t j, int64_t count, const double* __restrict x, int64_t time, const Take& take) {
    for (int64_t i = 0; i < count; ++i, x += width) {
      double* __restrict slot = slots + (j + i) * width, * __restrict slot_row = slot_rows + (j + i) * width;
      const double row = double(time + i);
      for_columns(width, [&](int64_t n) {
        const double value = largest ? x[n] : -x[n], suffix = slot[n], before = total[n];
        const double prefix = larger(value, before), maximum = larger(suffix, prefix);
        slot[n] = value, total[n] = prefix;
        double newest = 0;
        if constexpr (rows) {
          const double prefix_row = value >= before ? row : total_row[n];
          newest = suffix > prefix ? slot_row[n] : prefix_row;
          slot_row[n] = row, total_row[n] = prefix_row;
        }
        take(i, n, maximum, newest);
      });
    }
  }
};

template <bool largest, bool rows, bool since, typename Width>
inline void extremes(const Forward& tile, Width width) {
  const int64_t window = window_of(tile.attributes);
  BlockMaxima<largest, rows, Width> block(window, width, tile.state);
  for_blocks(
      tile.time, tile.begin, tile.end, window, [&] { block.turn(); },
      [&](int64_t r, int64_t j, int64_t count) {
        double* __restrict y = tile.y + r * width, * __restrict tape = tile.tape + r * width;
        const int64_t time = tile.time + r;
        const bool record = tile.tape;
        block.run(j, count, tile.x[0] + r * width, time, [=](int64_t i, int64_t n, double maximum, double row) {
          const double rows_since = double(time + i) - row;
          const double value = since ? rows_since : (largest ? maximum : -maximum);
          y[i * width + n] = missing(maximum) ? kMissing : value;
          if (rows && !since && record) tape[i * width + n] = row;
        });
      });
}

template <bool largest>
SERIES_KERNEL void extreme(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    tile.traced ? extremes<largest, true, false>(tile, width) : extremes<largest, false, false>(tile, width);
  });
}

template <bool largest>
SERIES_KERNEL void rows_since(const Forward& tile) {
  for_width(tile.width, [&](auto width) { extremes<largest, true, true>(tile, width); });
}

// The gradient goes to the row of the extreme, which waits for it in a ring of W rows.
void extreme_adjoint(const Adjoint& tile) {
  const int64_t window = window_of(tile.attributes), width = tile.width;
  for (int64_t r = tile.end - 1; r >= tile.begin; --r) {
    const double *y = tile.y + r * width, *dy = tile.dy + r * width, *row = tile.tape + r * width;
    double *own = tile.state + (tile.time + r) % window * width, *dx = tile.dx[0] + r * width;
    for (int64_t n = 0; n < width; ++n)
      if (!missing(y[n])) tile.state[int64_t(row[n]) % window * width + n] += dy[n];
    for (int64_t n = 0; n < width; ++n) dx[n] += own[n], own[n] = 0;
  }
}

int64_t value_states(const double* attributes) { return window_of(attributes) + 1; }
int64_t row_states(const double* attributes) { return 2 * (window_of(attributes) + 1); }

void start_maxima(const double* attributes, int64_t planes, int64_t width, double* state) {
  const int64_t window = window_of(attributes);
  std::fill_n(state, planes * width, 0.0);
  std::fill_n(state, (window - 1) * width, kMissing);
  std::fill_n(state + (window - 1) * width, 2 * width, kLowest);
}

template <bool largest>
constexpr Primitive extreme_primitive(std::string_view name) {
  return {.name = name,
          .operands = 1,
          .min_attributes = 1,
          .max_attributes = 1,
          .forward = extreme<largest>,
          .states = value_states,
          .traced_states = row_states,
          .start = start_maxima,
          .adjoint = extreme_adjoint,
          .adjoint_states = window_of,
          .tapes = 1};
}

template <bool largest>
constexpr Primitive since_primitive(std::string_view name) {
  return {.name = name,
          .operands = 1,
          .min_attributes = 1,
          .max_attributes = 1,
          .forward = rows_since<largest>,
          .states = row_states,
          .start = start_maxima};
}

constexpr Primitive kPrimitives[] = {
    extreme_primitive<true>("highest"),
    extreme_primitive<false>("lowest"),
    since_primitive<true>("since_highest"),
    since_primitive<false>("since_lowest"),
};

}  // namespace

std::span<const Primitive> extreme_primitives() { return kPrimitives; }

}  // namespace commodity::series
