// row, lag, forward_fill, previous, change, true_range, count, skip, cumsum.
#include "primitives.h"
#include "scan.h"
#include "scans.h"

namespace commodity::series {
namespace {

SERIES_KERNEL void row_number(const Forward& tile) {
  for (int64_t r = tile.begin; r < tile.end; ++r) {
    const double row = double(tile.time + r);
    for (int64_t n = 0; n < tile.width; ++n) tile.y[r * tile.width + n] = row;
  }
}

// The last `rows` rows are kept in a ring: row t in slot t % rows. Calls body(row, slot, count) for stretches of rows
// that lie side by side in the ring, oldest first.
template <typename Body>
inline void for_ring(int64_t time, int64_t begin, int64_t end, int64_t rows, const Body& body) {
  for (int64_t r = begin, count; r < end; r += count) {
    const int64_t slot = (time + r) % rows;
    count = std::min(end - r, rows - slot);
    body(r, slot, count);
  }
}

void lag(const Forward& tile) {
  const int64_t rows = int64_t(tile.attributes[0]), width = tile.width, delayed = std::min(tile.begin + rows, tile.end);
  const double* x = tile.x[0];
  for_ring(tile.time, tile.begin, delayed, std::max<int64_t>(rows, 1), [&](int64_t r, int64_t slot, int64_t count) {
    std::copy_n(tile.state + slot * width, count * width, tile.y + r * width);
  });
  std::copy_n(x + tile.begin * width, (tile.end - delayed) * width, tile.y + delayed * width);
  const int64_t first = std::max(tile.begin, tile.end - rows);
  for_ring(tile.time, first, tile.end, std::max<int64_t>(rows, 1), [&](int64_t r, int64_t slot, int64_t count) {
    std::copy_n(x + r * width, count * width, tile.state + slot * width);
  });
}

SERIES_KERNEL void lag_adjoint(const Adjoint& tile) {
  const int64_t rows = int64_t(tile.attributes[0]), width = tile.width;
  for (int64_t r = tile.end - 1; r >= tile.begin; --r) {
    const double *y = tile.y + r * width, *dy = tile.dy + r * width;
    double *dx = tile.dx[0] + r * width, *later = rows ? tile.state + (tile.time + r) % rows * width : tile.waste;
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      const double gradient = missing(y[n]) ? 0 : dy[n];
      dx[n] += rows ? later[n] : gradient;
      later[n] = gradient;
    }
  }
}

int64_t lag_rows(const double* attributes) { return int64_t(attributes[0]); }

constexpr Primitive kPrimitives[] = {
    {.name = "row", .operands = 1, .forward = row_number},
    {.name = "lag",
     .operands = 1,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = lag,
     .states = lag_rows,
     .start = start_missing,
     .adjoint = lag_adjoint,
     .adjoint_states = lag_rows},
    scan_primitive<ForwardFill>("forward_fill"),
    scan_primitive<Previous>("previous"),
    scan_primitive<Change>("change"),
    scan_primitive<TrueRange>("true_range"),
    scan_primitive<CountValues>("count"),
    scan_primitive<Skip>("skip"),
    scan_primitive<CumulativeSum>("cumsum"),
};

}  // namespace

std::span<const Primitive> delay_primitives() { return kPrimitives; }

}  // namespace commodity::series
