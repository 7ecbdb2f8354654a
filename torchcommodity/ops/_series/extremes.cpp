// highest, lowest, since_highest, since_lowest: window.h, with running maxima in place of sums. Minima are maxima of
// -x.
#include "primitives.h"
#include "window.h"

namespace commodity::series {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// A missing value stays in the maximum of every window that contains it.
template <typename Number>
inline Number larger(const Number& newer, const Number& older) {
  const Number maximum = newer > older ? newer : older;
  return missing(newer) ? newer : maximum;
}

// Planes: W values or suffix maxima, the maximum of the prefix; and the same of their row numbers, if `rows`. Of equal
// values the newest counts.
template <bool largest, bool rows, typename Width>
struct BlockMaxima {
  const int64_t window;
  const Width width;
  double *slots, *total, *slot_rows, *total_row;

  BlockMaxima(int64_t window, Width width, double* state)
      : window(window),
        width(width),
        slots(state),
        total(state + window * width),
        slot_rows(state + (rows ? window + 1 : 0) * width),
        total_row(slot_rows + window * width) {}

  void turn() {
    for_vectors(width, [&](auto zero, int64_t n) {
      auto maximum = zero + kLowest, value = zero, maximum_row = zero, row = zero;
      if constexpr (rows) load<double>(maximum_row, total_row + n);
      for (int64_t i = (window - 1) * width + n; i >= 0; i -= width) {
        load<double>(value, slots + i), store<double>(maximum, slots + i);
        if constexpr (rows) {
          load<double>(row, slot_rows + i), store<double>(maximum_row, slot_rows + i);
          maximum_row = value > maximum ? row : maximum_row;
        }
        maximum = larger(value, maximum);
      }
      if constexpr (rows) store<double>(maximum_row, total_row + n);
    });
    std::fill_n(total, width, kLowest);
  }

  // take(i, n, maximum, row of the maximum), of a vector of columns from n on
  template <typename Take>
  void run(int64_t j, int64_t count, const double* x, int64_t time, const Take& take) {
    for_vectors(width, [&](auto zero, int64_t n) {
      auto value = zero, suffix = zero, prefix = zero, suffix_row = zero, prefix_row = zero;
      load<double>(prefix, total + n);
      if constexpr (rows) load<double>(prefix_row, total_row + n);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t slot = (j + i) * width + n;
        load<double>(value, x + i * width + n), load<double>(suffix, slots + slot);
        if constexpr (!largest) value = -value;
        store<double>(value, slots + slot);
        if constexpr (rows) {
          const auto row = zero + double(time + i);
          load<double>(suffix_row, slot_rows + slot), store<double>(row, slot_rows + slot);
          prefix_row = value >= prefix ? row : prefix_row;
        }
        prefix = larger(value, prefix);
        take(i, n, larger(suffix, prefix), suffix > prefix ? suffix_row : prefix_row);
      }
      store<double>(prefix, total + n);
      if constexpr (rows) store<double>(prefix_row, total_row + n);
    });
  }
};

template <bool largest, bool rows, bool since, typename Width>
inline void extremes(const Forward& tile, Width width) {
  const int64_t window = window_of(tile.attributes);
  BlockMaxima<largest, rows, Width> block(window, width, tile.state);
  for_blocks(
      tile.time, tile.begin, tile.end, window, [&] { block.turn(); },
      [&](int64_t r, int64_t j, int64_t count) {
        double *y = tile.y + r * width, *tape = rows && !since && tile.tape ? tile.tape + r * width : nullptr;
        const int64_t time = tile.time + r;
        block.run(j, count, tile.x[0] + r * width, time, [=](int64_t i, int64_t n, auto maximum, auto row) {
          const auto rows_since = double(time + i) - row, value = largest ? maximum : -maximum;
          store<double>(since ? missing(maximum) ? maximum : rows_since : value, y + i * width + n);
          if (tape) store<double>(row, tape + i * width + n);
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
