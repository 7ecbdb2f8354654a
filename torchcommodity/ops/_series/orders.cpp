// absolute_deviation, rank: they compare each value with all values of the window, in a step per row of the window.
#include "primitives.h"
#include "window.h"

namespace commodity::series {
namespace {

// Planes: the sums of window.h, of differences from the first row of the block; a ring of the last W rows, row t in
// t % W; the anchor. The mean of a constant is then exact, and its deviation zero.
struct DeviationPlanes {
  double *sums, *ring, *anchor;
  DeviationPlanes(double* state, int64_t window, int64_t width)
      : sums(state), ring(state + (window + 1) * width), anchor(ring + window * width) {}
};

// The sum of a vector of columns stays in a register.
template <typename Width>
inline void deviation_row(const double* ring, int64_t window, Width width, const double* mean, double* y) {
  for_vectors(width, [&](auto sum, int64_t n) {
    decltype(sum) center, x;
    load<double>(center, mean + n);
    for (int64_t i = 0; i < window; ++i) {
      load<double>(x, ring + i * width + n);
      x -= center;
      sum += x < 0 ? -x : x;
    }
    store<double>(sum / double(window), y + n);
  });
}

SERIES_KERNEL void absolute_deviation(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    const DeviationPlanes planes(tile.state, window, width);
    BlockSums<false, decltype(width)> block(window, width, planes.sums);
    AlignedVector<double> mean(width);
    for (int64_t r = tile.begin; r < tile.end; ++r) {
      const double* x = tile.x[0] + r * width;
      const int64_t j = (tile.time + r) % window;
      double *anchor = planes.anchor, *center = mean.data();
      if (j == 0) {
        std::copy_n(x, width, anchor);
        // the ring is the previous block, in order
        for (int64_t i = 0; tile.time + r > 0 && i < window * width; ++i)
          planes.sums[i] = planes.ring[i] - anchor[i % width];
        if (tile.time + r > 0) block.turn();
      }
      block.run(
          j, 1,
          [=](auto& difference, int64_t, int64_t n) {
            auto first = difference;
            load<double>(difference, x + n), load<double>(first, anchor + n);
            difference -= first;
          },
          [=](int64_t, int64_t n, auto sum) {
            auto first = sum;
            load<double>(first, anchor + n);
            store<double>(first + sum / double(window), center + n);
          });
      std::copy_n(x, width, planes.ring + j * width);
      deviation_row(planes.ring, window, width, center, tile.y + r * width);
      if (tile.tape) std::copy_n(center, width, tile.tape + r * width);
    }
  });
}

int64_t deviation_states(const double* attributes) { return 2 * window_of(attributes) + 2; }

inline double sign_of(double x) {
  const double above = x > 0 ? 1 : 0, below = x < 0 ? 1 : 0;
  return above - below;
}

// d|x_i - mean| summed over i: each sign, less the mean of the signs. The gradient waits in a ring for its row.
SERIES_KERNEL void deviation_adjoint(const Adjoint& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    const double* older = tile.start + (window + 1) * width;  // the ring before row 0
    const auto row_of = [&](int64_t row) {
      return row >= tile.time ? tile.x[0] + (row - tile.time) * width : older + row % window * width;
    };
    AlignedVector<double> memory(2 * width);
    double* __restrict gradient = memory.data(), * __restrict signs = gradient + width;
    for (int64_t r = tile.end - 1; r >= tile.begin; --r) {
      const int64_t time = tile.time + r;
      const double *y = tile.y + r * width, *dy = tile.dy + r * width, *mean = tile.tape + r * width;
      for (int64_t row = time - window + 1; row >= 0 && row <= time; ++row) {
        const double* x = row_of(row);
        const bool first = row == time - window + 1;
        for_columns(width, [&](int64_t n) { signs[n] = (first ? 0 : signs[n]) + sign_of(x[n] - mean[n]); });
      }
      for_columns(width, [&](int64_t n) { gradient[n] = missing(y[n]) ? 0 : dy[n] / double(window); });
      for (int64_t row = time - window + 1; row >= 0 && row <= time; ++row) {
        const double* x = row_of(row);
        double* __restrict state = tile.state + row % window * width;
        for_columns(
            width, [&](int64_t n) { state[n] += gradient[n] * (sign_of(x[n] - mean[n]) - signs[n] / double(window)); });
      }
      double *own = tile.state + time % window * width, *dx = tile.dx[0] + r * width;
      for_columns(width, [&](int64_t n) { dx[n] += own[n], own[n] = 0; });
    }
  });
}

// The number of the W previous values that are less than the current one.
SERIES_KERNEL void rank(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    for (int64_t r = tile.begin; r < tile.end; ++r) {
      const double* __restrict x = tile.x[0] + r * width;
      double* __restrict y = tile.y + r * width;
      std::fill_n(y, width, 0.0);
      for (int64_t i = 0; i < window; ++i) {
        const double* __restrict previous = tile.state + i * width;
        for_columns(width, [&](int64_t n) {
          const double less = previous[n] < x[n] ? 1.0 : 0.0;  // not an integer, which clang would convert
          y[n] += (missing(previous[n]) | missing(x[n])) ? kMissing : less;
        });
      }
      std::copy_n(x, width, tile.state + (tile.time + r) % window * width);
    }
  });
}

constexpr Primitive kPrimitives[] = {
    {.name = "absolute_deviation",
     .operands = 1,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = absolute_deviation,
     .states = deviation_states,
     .start = start_window,
     .adjoint = deviation_adjoint,
     .adjoint_states = window_of,
     .tapes = 1},
    {.name = "rank",
     .operands = 1,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = rank,
     .states = window_of,
     .start = start_missing},
};

}  // namespace

std::span<const Primitive> order_primitives() { return kPrimitives; }

}  // namespace commodity::series
