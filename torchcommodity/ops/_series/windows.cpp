// window_sum, window_mean, weighted_sum, window_products.
#include "primitives.h"
#include "window.h"

namespace commodity::series {
namespace {

enum class Sum { kPlain, kMean, kWeighted };

template <Sum kind>
SERIES_KERNEL void sums(const Forward& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    BlockSums<kind == Sum::kWeighted, decltype(width)> block(window, width, tile.state);
    for_blocks(
        tile.time, tile.begin, tile.end, window, [&] { block.turn(); },
        [&](int64_t r, int64_t j, int64_t count) {
          const double* from = tile.x[0] + r * width;
          double* to = tile.y + r * width;
          block.run(
              j, count, [=](auto& x, int64_t i, int64_t n) { load<double>(x, from + i * width + n); },
              [=](int64_t i, int64_t n, auto sum) {
                store<double>(kind == Sum::kMean ? sum / double(window) : sum, to + i * width + n);
              });
        });
  });
}

// Sets x to element i of the gradient, zero where the value is missing.
template <typename Number>
inline void load_gradient(Number& x, const double* dy, const double* y, int64_t i) {
  Number value;
  load<double>(value, y + i), load<double>(x, dy + i);
  x = missing(value) ? Number{} : x;
}

template <typename Number>
inline void add_to(double* to, const Number& x) {
  Number before;
  load<double>(before, to);
  store<double>(before + x, to);
}

// The transpose: the same sums over this row and those after it.
template <Sum kind>
SERIES_KERNEL void sums_adjoint(const Adjoint& tile) {
  for_width(tile.width, [&](auto width) {
    const int64_t window = window_of(tile.attributes);
    const double scale = kind == Sum::kMean ? 1 / double(window) : 1;
    BlockSums<kind == Sum::kWeighted, decltype(width)> block(window, width, tile.state);
    for_blocks_backward(
        tile, tile.steps, window, [&] { block.turn(); },
        [&](int64_t r, int64_t j, int64_t count) {
          const double *dy = tile.dy + r * width, *y = tile.y + r * width;
          double* dx = tile.dx[0] + r * width;
          block.run(
              j, count, [=](auto& x, int64_t i, int64_t n) { load_gradient(x, dy, y, n - i * width), x *= scale; },
              [=](int64_t i, int64_t n, auto sum) { add_to(dx + n - i * width, sum); });
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
  double *slots_a, *slots_b, *slots_ab, *totals, *anchors;

  BlockProducts(int64_t window, Width width, double* state)
      : window(window),
        width(width),
        slots_a(state),
        slots_b(slots_a + window * width),
        slots_ab(slots_b + window * width),
        totals(slots_ab + window * width),
        anchors(totals + 3 * width) {}

  void turn() {
    for_vectors(width, [&](auto zero, int64_t n) {
      auto sum_a = zero, sum_b = zero, sum_ab = zero, da = zero, db = zero, anchor_a = zero, anchor_b = zero;
      load<double>(anchor_a, anchors + n), load<double>(anchor_b, anchors + width + n);
      for (int64_t j = window - 1; j >= 0; --j) {
        double *a = slots_a + j * width + n, *b = slots_b + j * width + n;
        load<double>(da, a), da -= anchor_a;
        store<double>(sum_a, a), store<double>(sum_ab, slots_ab + j * width + n);
        if constexpr (same) {
          db = da;
        } else {
          load<double>(db, b), db -= anchor_b;
          store<double>(sum_b, b), sum_b += db;
        }
        sum_a += da, sum_ab += da * db;
      }
    });
    std::fill_n(totals, 3 * width, 0.0);
  }

  void run(int64_t j, int64_t count, const double* x, const double* z, double* y, double* tape) {
    const double inverse = 1 / double(window);
    for_vectors(width, [&](auto zero, int64_t n) {
      auto total_a = zero, total_b = zero, total_ab = zero, anchor_a = zero, anchor_b = zero;
      auto value_a = zero, value_b = zero, suffix_a = zero, suffix_b = zero, suffix_ab = zero;
      load<double>(total_a, totals + n), load<double>(anchor_a, anchors + n);
      load<double>(total_b, totals + width + n), load<double>(anchor_b, anchors + width + n);
      load<double>(total_ab, totals + 2 * width + n);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = i * width + n, slot = j * width + row;
        load<double>(value_a, x + row), load<double>(suffix_a, slots_a + slot),
            load<double>(suffix_ab, slots_ab + slot);
        store<double>(value_a, slots_a + slot);
        if constexpr (!same) {
          load<double>(value_b, z + row), load<double>(suffix_b, slots_b + slot);
          store<double>(value_b, slots_b + slot);
        }
        const auto da = value_a - anchor_a, db = same ? da : value_b - anchor_b;
        total_a += da, total_b += db, total_ab += da * db;
        const auto sum_a = suffix_a + total_a, sum_b = same ? sum_a : suffix_b + total_b, mean_a = sum_a * inverse;
        const auto products = (suffix_ab + total_ab) - mean_a * sum_b;
        store<double>(same & (products < 0) ? zero : products, y + row);
        if (!tape) continue;
        store<double>(anchor_a + mean_a, tape + 2 * i * width + n);
        store<double>((same ? anchor_a : anchor_b) + sum_b * inverse, tape + (2 * i + 1) * width + n);
      }
      store<double>(total_a, totals + n), store<double>(total_b, totals + width + n);
      store<double>(total_ab, totals + 2 * width + n);
    });
  }
};

template <bool same, typename Width>
inline void products_rows(const Forward& tile, Width width) {
  const int64_t window = window_of(tile.attributes);
  const double *a = tile.x[0], *b = tile.x[1];
  BlockProducts<same, Width> block(window, width, tile.state);
  for_blocks(
      tile.time, tile.begin, tile.end, window, [] {},
      [&](int64_t r, int64_t j, int64_t count) {
        if (j == 0) {
          std::copy_n(a + r * width, width, block.anchors), std::copy_n(b + r * width, width, block.anchors + width);
          if (tile.time + r > 0) block.turn();
        }
        block.run(j, count, a + r * width, b + r * width, tile.y + r * width,
                  tile.tape ? tile.tape + 2 * r * width : nullptr);
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
          const double *dy = tile.dy + r * width, *y = tile.y + r * width;
          double* sums = tile.waste;
          for (int64_t i = 0; i < count; ++i, dy -= width, y -= width) {
            gradients.run(
                j + i, 1, [=](auto& x, int64_t, int64_t n) { load_gradient(x, dy, y, n); },
                [=](int64_t, int64_t n, auto sum) { store<double>(sum, sums + n); });
            for (int k = 0; k < 2; ++k) {
              if (!tile.dx[k]) continue;
              const double *other = tile.x[1 - k] + (r - i) * width, *tape = tile.tape + (2 * (r - i) + 1 - k) * width;
              double* dx = tile.dx[k] + (r - i) * width;
              means[k].run(
                  j + i, 1,
                  [=](auto& x, int64_t, int64_t n) {
                    auto mean = x;
                    load<double>(mean, tape + n), load_gradient(x, dy, y, n);
                    const auto term = x * mean;
                    x = missing(mean) ? x : term;
                  },
                  [=](int64_t, int64_t n, auto sum) {
                    auto factor = sum, total = sum;
                    load<double>(factor, other + n), load<double>(total, sums + n);
                    const auto term = factor * total - sum;
                    add_to(dx + n, missing(factor) ? decltype(sum){} : term);
                  });
            }
          }
        });
  });
}

int64_t sum_states(const double* attributes) { return window_of(attributes) + 1; }
int64_t weighted_states(const double* attributes) { return window_of(attributes) + 2; }
int64_t product_adjoint_states(const double* attributes) { return 3 * (window_of(attributes) + 1); }

template <Sum kind>
constexpr Primitive sum_primitive(std::string_view name) {
  const Count states = kind == Sum::kWeighted ? weighted_states : sum_states;
  return {.name = name,
          .operands = 1,
          .min_attributes = 1,
          .max_attributes = 1,
          .forward = sums<kind>,
          .states = states,
          .start = start_window,
          .adjoint = sums_adjoint<kind>,
          .adjoint_states = states};
}

constexpr Primitive kPrimitives[] = {
    sum_primitive<Sum::kPlain>("window_sum"),
    sum_primitive<Sum::kMean>("window_mean"),
    sum_primitive<Sum::kWeighted>("weighted_sum"),
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
