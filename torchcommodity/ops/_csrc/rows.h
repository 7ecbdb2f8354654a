// Recurrences over time on the CPU, with the bodies of device_scan.h: row by row, and the loop over the columns of a
// row is what vectorizes. One loop for all rows: a live update begins with any of them, and must give the same bits.
#pragma once
#include "affine.h"
#include "native.h"

namespace commodity {
inline namespace on_cpu {

constexpr int64_t kRowColumns = 1024;  // columns of which the caches hold the states and a few rows

template <typename T>
COMMODITY_INLINE T read(const T* address) {
  return *address;
}

template <typename Number, typename Divisor>
COMMODITY_INLINE auto divide(const Number& x, const Divisor& y) {
  return x / y;
}

template <typename Body>
COMMODITY_SIMD void advance_rows(const Body& pointers, int64_t panel, int64_t first, int64_t last, int64_t steps,
                                 int64_t columns) {
  using State = typename Body::State;
  const Body body = pointers;  // in registers
  constexpr int K = sizeof(State::y) / sizeof(State::y[0]);
  std::remove_extent_t<decltype(State::y)> y[K][kRowColumns];
  for (int64_t n = first; n < last; ++n)
    for (int k = 0; k < K; ++k) y[k][n - first] = body.initial(body.column(panel, n)).y[k];
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t row = (panel * steps + t) * columns;
    COMMODITY_IVDEP
    for (int64_t n = first; n < last; ++n) {
      State state;
      for (int k = 0; k < K; ++k) state.y[k] = y[k][n - first];
      const State next = body.advance(body.column(panel, n), row + n, t, state);
      for (int k = 0; k < K; ++k) y[k][n - first] = next.y[k];
    }
  }
  if constexpr (requires(State state) { body.finish(body.column(0, 0), state); })
    for (int64_t n = first; n < last; ++n) {
      State state;
      for (int k = 0; k < K; ++k) state.y[k] = y[k][n - first];
      body.finish(body.column(panel, n), state);
    }
}

// A recurrence of any kind: state = body.advance(column, i, t, state) reads row t and writes its result. i is the index
// of the value in (batch, steps, columns); column(panel, n) holds what is constant in a column, and finish(column,
// state), where a body has it, takes the last state.
template <typename Body>
void run_series(const Tensor&, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  for_each_block(
      Panels(batch, steps, columns),
      [&](int64_t panel, int64_t first, int64_t last) { advance_rows(body, panel, first, last, steps, columns); },
      kRowColumns);
}

template <typename Body>
struct ScanSeries : Body {
  using Column = decltype(std::declval<const Body&>().column(0, 0));

  COMMODITY_INLINE typename Body::State advance(const Column& column, int64_t i, int64_t t,
                                                const typename Body::State& state) const {
    const auto row = Body::load(column, i, t);
    const auto next = Body::map(column, row).apply(state);
    Body::write(column, i, t, row, state, next);
    return next;
  }
};

// The bodies of device_scan.h.
template <typename scalar_t, typename Body>
void run_scan(const Tensor& like, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  run_series(like, batch, steps, columns, ScanSeries<Body>{body});
}

}  // namespace on_cpu
}  // namespace commodity
