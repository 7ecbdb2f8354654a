// exponential, recurrence, smooth, feedback, assign.
#include "primitives.h"
#include "scan.h"
#include "scans.h"

namespace commodity::series {
namespace {

// Whether the seed and the first output lie before the tile in every column, and weights are numbers.
inline bool is_settled(const Forward& tile) {
  const double *count = tile.state + tile.width, seed = *tile.x[Exponential::kSeed];
  const double min_count = *tile.x[Exponential::kMinCount];
  for (int k = Exponential::kWeight; k <= Exponential::kSeedWeight; ++k)
    if (!tile.constant[k]) return false;
  int64_t waiting = 0;
  for (int64_t n = 0; n < tile.width; ++n) waiting |= (count[n] >= seed) & (count[n] >= min_count) ? 0 : 1;
  return !waiting;
}

// Most tiles are settled: one weight and nothing to count, as only whether the count has reached seed and min_count
// matters; the same bits. Row by row, as the columns of a row do not wait for each other; a single column would read
// back what it has just stored.
SERIES_KERNEL void exponential(const Forward& tile) {
  if (tile.tape || tile.width == 1 || !is_settled(tile)) return scan<Exponential>(tile);
  const double weight = *tile.x[Exponential::kWeight], *before = tile.state;
  for (int64_t r = tile.begin; r < tile.end; ++r) {
    const double *x = tile.x[Exponential::kValue] + r * tile.width, *from = before;
    double* y = tile.y + r * tile.width;
    for_columns(whole(tile.width), [=](int64_t n) {
      const double next = from[n] + weight * (x[n] - from[n]);
      y[n] = missing(x[n]) ? from[n] : next;
    });
    before = y;
  }
  std::copy_n(before, tile.width, tile.state);
}

// Most weights are numbers: only the value has a gradient.
SERIES_KERNEL void exponential_adjoint(const Adjoint& tile) {
  using E = Exponential;
  if (tile.dx[E::kWeight] || tile.dx[E::kSeedWeight]) return scan_adjoint<E>(tile);
  if (!tile.dx[E::kValue]) return;
  for_width(tile.width, [&](auto width) {
    for (int64_t r = tile.end - 1; r >= tile.begin; --r) {
      const int64_t first = r * width;
      const double *a = tile.x[E::kValue] + first, *weight = tile.x[E::kWeight] + first;
      const double *seed = tile.x[E::kSeed] + first, *seed_weight = tile.x[E::kSeedWeight] + first;
      const double *y = tile.y + first, *dy = tile.dy + first, *count = tile.tape + (2 * r + 1) * width;
      double *da = tile.dx[E::kValue] + first, *carry = tile.state;
      for_columns(width, [=](int64_t n) {
        const bool seeding = count[n] <= seed[n];
        const bool present = !missing(a[n]) & !missing(weight[n]) & !missing(seed_weight[n]);
        const double total = (missing(y[n]) ? 0 : dy[n]) + carry[n], decayed = total * (1 - weight[n]);
        const double slope = total * (seeding ? seed_weight[n] : weight[n]);
        da[n] += present ? slope : 0;
        carry[n] = present & !seeding ? decayed : total;
      });
    }
  });
}

constexpr Primitive exponential_primitive() {
  Primitive primitive = scan_primitive<Exponential>("exponential");
  primitive.forward = exponential;
  primitive.adjoint = exponential_adjoint;
  return primitive;
}

// The value that `assign` has put into the state one row before.
SERIES_KERNEL void feedback(const Forward& tile) { std::copy_n(tile.state, tile.width, tile.y + tile.offset()); }

SERIES_KERNEL void feedback_adjoint(const Adjoint& tile) {
  for (int64_t n = 0; n < tile.width; ++n) tile.state[n] = tile.dy[tile.offset() + n];
}

void start_feedback(const double* attributes, int64_t planes, int64_t width, double* state) {
  std::fill_n(state, planes * width, attributes[0]);
}

SERIES_KERNEL void assign(const Forward& tile) {
  const double *held = tile.x[0] + tile.offset(), *next = tile.x[1] + tile.offset();
  COMMODITY_IVDEP
  for (int64_t n = 0; n < tile.width; ++n) tile.state[n] = missing(next[n]) ? held[n] : next[n];
}

SERIES_KERNEL void assign_adjoint(const Adjoint& tile) {
  const double* next = tile.x[1] + tile.offset();
  if (double* held = tile.dx[0])
    for (int64_t n = 0; n < tile.width; ++n) held[tile.offset() + n] += missing(next[n]) ? tile.state[n] : 0;
  if (double* dx = tile.dx[1])
    for (int64_t n = 0; n < tile.width; ++n) dx[tile.offset() + n] += missing(next[n]) ? 0 : tile.state[n];
}

int64_t one(const double*) { return 1; }

constexpr Primitive kPrimitives[] = {
    exponential_primitive(),
    scan_primitive<Recurrence>("recurrence"),
    scan_primitive<Smooth>("smooth"),
    {.name = "feedback",
     .min_attributes = 1,
     .max_attributes = 1,
     .forward = feedback,
     .states = one,
     .start = start_feedback,
     .adjoint = feedback_adjoint,
     .adjoint_states = one},
    {.name = "assign", .operands = 2, .forward = assign, .adjoint = assign_adjoint},  // the state is that of `feedback`
};

}  // namespace

std::span<const Primitive> recursive_primitives() { return kPrimitives; }

}  // namespace commodity::series
