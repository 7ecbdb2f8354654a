// window_sum, age_sum, window_products.
#include "primitives.h"
#include "window.h"

namespace commodity::series {
namespace {

template <bool ages>
SERIES_KERNEL void sums(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    BlockSums<ages, decltype(width)> block(window, width, tile.state);
    for_blocks(
        tile.time, tile.begin, tile.end, window, [&] { block.turn(); },
        [&](int64_t r, int64_t j, int64_t count) {
          const double* __restrict x = tile.x[0] + r * width;
          double* __restrict y = tile.y + r * width;
          block.run(
              j, count, [=](int64_t i, int64_t n) { return x[i * width + n]; },
              [=](int64_t i, int64_t n, double sum) { y[i * width + n] = sum; });
        });
  });
}

// The transpose: the same sums over this row and those after it.
template <bool ages>
SERIES_KERNEL void sums_adjoint(const Adjoint& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    BlockSums<ages, decltype(width)> block(window, width, tile.state);
    for_blocks_backward(
        tile, tile.steps, window, [&] { block.turn(); },
        [&](int64_t r, int64_t j, int64_t count) {
          const double* __restrict dy = tile.dy + r * width, * __restrict y = tile.y + r * width;
          double* __restrict dx = tile.dx[0] + r * width;
          block.run(
              j, count, [=](int64_t i, int64_t n) { return missing(y[n - i * width]) ? 0 : dy[n - i * width]; },
              [=](int64_t i, int64_t n, double sum) { dx[n - i * width] += sum; });
        });
  });
}

// Sums of products of deviations from the means of the window, as sums of differences from the first row of the block,
// which all of its windows contain: neither a high level nor a value that has left the window costs digits, and the
// result is exactly zero where a series is constant.
//
// Planes: values of a (then suffix sums of a), values of b, suffix sums of products; the totals of the three; anchors.
// With `same`, b is a and its planes are not used.
template <bool same, typename Width>
struct BlockProducts {
  const int64_t window;
  const Width width;
  const bool record;
  double* __restrict slots_a, * __restrict slots_b, * __restrict slots_ab, * __restrict totals, * __restrict anchors;

  BlockProducts(int64_t window, Width width, bool record, double* state)
      : window(window),
        width(width),
        record(record),
        slots_a(state),
        slots_b(slots_a + window * width),
        slots_ab(slots_b + window * width),
        totals(slots_ab + window * width),
        anchors(totals + 3 * width) {}

  void turn() {
    std::fill_n(totals, 3 * width, 0.0);
    for (int64_t j = window - 1; j >= 0; --j) {
      double* __restrict a = slots_a + j * width, * __restrict b = slots_b + j * width;
      double* __restrict ab = slots_ab + j * width;
      for_columns(width, [&](int64_t n) {
        const double da = a[n] - anchors[n], db = same ? da : b[n] - anchors[width + n], product = da * db;
        a[n] = totals[n], totals[n] += da;
        if constexpr (!same) b[n] = totals[width + n], totals[width + n] += db;
        ab[n] = totals[2 * width + n], totals[2 * width + n] += product;
      });
    }
    std::fill_n(totals, 3 * width, 0.0);
  }

  void run(int64_t j, int64_t count, const double* __restrict x, const double* __restrict z, double* __restrict y,
           double* __restrict tape) {
    const double inverse = 1 / double(window);
    for (int64_t i = 0; i < count; ++i, x += width, z += width, y += width, tape += record ? 2 * width : 0) {
      double* __restrict a = slots_a + (j + i) * width, * __restrict b = slots_b + (j + i) * width;
      double* __restrict ab = slots_ab + (j + i) * width;
      for_columns(width, [&](int64_t n) {
        const double da = x[n] - anchors[n], db = same ? da : z[n] - anchors[width + n];
        const double total_a = totals[n] + da, total_b = same ? total_a : totals[width + n] + db;
        const double total_ab = totals[2 * width + n] + da * db;
        totals[n] = total_a, totals[2 * width + n] = total_ab;
        if constexpr (!same) totals[width + n] = total_b;
        const double sum_a = a[n] + total_a, sum_b = same ? sum_a : b[n] + total_b, mean_a = sum_a * inverse;
        const double products = (ab[n] + total_ab) - mean_a * sum_b, bounded = products < 0 ? 0 : products;
        y[n] = same ? bounded : products;
        if (record) tape[n] = anchors[n] + mean_a, tape[width + n] = anchors[same ? n : width + n] + sum_b * inverse;
        a[n] = x[n];
        if constexpr (!same) b[n] = z[n];
      });
    }
  }
};

template <bool same, typename Width>
inline void products_rows(const Forward& tile, Width width) {
  const int64_t window = window_of(tile.attributes);
  const double *a = tile.x[0], *b = tile.x[1];
  BlockProducts<same, Width> block(window, width, tile.tape, tile.state);
  for_blocks(
      tile.time, tile.begin, tile.end, window, [] {},
      [&](int64_t r, int64_t j, int64_t count) {
        if (j == 0) {
          std::copy_n(a + r * width, width, block.anchors), std::copy_n(b + r * width, width, block.anchors + width);
          if (tile.time + r > 0) block.turn();
        }
        block.run(j, count, a + r * width, b + r * width, tile.y + r * width, tile.tape + 2 * r * width);
      });
}

SERIES_KERNEL void products(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    tile.x[0] == tile.x[1] ? products_rows<true>(tile, width) : products_rows<false>(tile, width);
  });
}

int64_t product_states(const double* attributes) { return 3 * window_of(attributes) + 5; }

void start_products(const double* attributes, int64_t planes, int64_t width, double* state) {
  const int64_t slots = window_of(attributes) * width;
  std::fill_n(state, planes * width, 0.0);
  for (int k = 0; k < 3; ++k) std::fill_n(state + k * slots, slots - width, kMissing);
}

// da_i = sum of g_t (b_i - mean_t b) over the windows t that contain row i: b_i times the sum of g, minus the sum of
// g mean b.
SERIES_KERNEL void products_adjoint(const Adjoint& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes), planes = (window + 1) * width;
    using Sums = BlockSums<false, decltype(width)>;
    Sums gradients(window, width, tile.state),
        means[2] = {{window, width, tile.state + planes}, {window, width, tile.state + 2 * planes}};
    for_blocks_backward(
        tile, tile.steps, window, [&] { gradients.turn(), means[0].turn(), means[1].turn(); },
        [&](int64_t r, int64_t j, int64_t count) {
          const double* __restrict dy = tile.dy + r * width, * __restrict y = tile.y + r * width;
          const auto gradient = [=](int64_t i, int64_t n) { return missing(y[n - i * width]) ? 0 : dy[n - i * width]; };
          for (int64_t i = 0; i < count; ++i) {
            double* __restrict waste = tile.waste;
            gradients.run(
                j + i, 1, [=](int64_t, int64_t n) { return gradient(i, n); },
                [=](int64_t, int64_t n, double sum) { waste[n] = sum; });
            for (int k = 0; k < 2; ++k) {
              if (!tile.dx[k]) continue;
              const double *other = tile.x[1 - k] + (r - i) * width, *tape = tile.tape + (2 * (r - i) + 1 - k) * width;
              double* dx = tile.dx[k] + (r - i) * width;
              means[k].run(
                  j + i, 1,
                  [=](int64_t, int64_t n) {
                    const double term = gradient(i, n) * tape[n];
                    return missing(y[n - i * width]) ? 0 : term;
                  },
                  [=](int64_t, int64_t n, double sum) {
                    const double term = other[n] * waste[n] - sum;
                    dx[n] += missing(other[n]) ? 0 : term;
                  });
            }
          }
        });
  });
}

int64_t sum_states(const double* attributes) { return window_of(attributes) + 1; }
int64_t age_states(const double* attributes) { return window_of(attributes) + 2; }
int64_t product_adjoint_states(const double* attributes) { return 3 * (window_of(attributes) + 1); }

constexpr Primitive kPrimitives[] = {
    {.name = "window_sum",
     .operands = 1,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = sums<false>,
     .states = sum_states,
     .start = start_window,
     .adjoint = sums_adjoint<false>,
     .adjoint_states = sum_states},
    {.name = "age_sum",
     .operands = 1,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = sums<true>,
     .states = age_states,
     .start = start_window,
     .adjoint = sums_adjoint<true>,
     .adjoint_states = age_states},
    {.name = "window_products",
     .operands = 2,
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = products,
     .states = product_states,
     .start = start_products,
     .adjoint = products_adjoint,
     .adjoint_states = product_adjoint_states,
     .tapes = 2},
};

}  // namespace

std::span<const Primitive> window_primitives() { return kPrimitives; }

}  // namespace commodity::series
