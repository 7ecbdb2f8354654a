// Loops over the rows of inputs and over the units of states, on the device for which they are compiled.
#pragma once
#include <type_traits>

#include "aten.h"
#include "kernel.h"
#include "simd.h"

namespace commodity {

inline Tensor empty_mask(const Tensor& input) {
  const std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end() - 1);
  return new_empty(input, sizes, torch::headeronly::ScalarType::Bool);
}

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// Counts the NaNs of a row: one warp per row.
template <typename scalar_t>
struct MissingRow {
  static constexpr int kSums = 1;
  const scalar_t* input;
  bool* missing;
  int64_t features;

  COMMODITY_INLINE void add(int64_t row, int64_t j, double* sums) const {
    const scalar_t x = input[row * features + j];
    sums[0] += x != x;
  }
  COMMODITY_INLINE void finish(int64_t row, const double* sums) const { missing[row] = sums[0] > 0; }
};

// Which rows of a contiguous input (..., F) contain a NaN.
inline Tensor find_missing(const Tensor& input) {
  Tensor missing = empty_mask(input);
  dispatch("recurrent layer", input, [&]<typename scalar_t>() {
    launch_rows(input, missing.numel(), input.size(-1),
                MissingRow<scalar_t>{input.const_data_ptr<scalar_t>(), data_ptr<bool>(missing), input.size(-1)});
  });
  return missing;
}

template <typename Body>
struct UnitItem {
  Body body;
  const bool* missing;
  int64_t units;
  COMMODITY_INLINE void operator()(int64_t i) const { body(i / units, i % units, missing[i / units]); }
};

// Calls body(sample, unit, is_missing) for every unit of every sample.
template <typename Body>
void for_each_unit(const Tensor& missing, int64_t units, const Body& body) {
  launch(missing, missing.numel() * units, UnitItem<Body>{body, missing.const_data_ptr<bool>(), units});
}

// Whether a sample is missing, as far as the host knows: it does not wait for a GPU.
inline bool may_have_missing(const Tensor&) { return true; }

}  // namespace on_gpu
#else
inline namespace on_cpu {

inline bool may_have_missing(const Tensor& missing) {
  const bool* is_missing = missing.const_data_ptr<bool>();
  return std::any_of(is_missing, is_missing + missing.numel(), [](bool x) { return x; });
}

template <typename scalar_t>
COMMODITY_INLINE bool has_nan(const scalar_t* x, int64_t size) {
  using Flag = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;  // as wide as a value, to vectorize
  Flag nan = 0;
  for (int64_t j = 0; j < size; ++j) nan |= x[j] != x[j];
  return nan;
}

inline Tensor find_missing(const Tensor& input) {
  Tensor missing = empty_mask(input);
  const int64_t features = input.size(-1), grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, features));
  dispatch("recurrent layer", input, [&]<typename scalar_t>() {
    const scalar_t* x = input.const_data_ptr<scalar_t>();
    bool* to = missing.mutable_data_ptr<bool>();
    parallel_for(0, missing.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = has_nan(x + i * features, features);
    });
  });
  return missing;
}

template <typename Body>
COMMODITY_INLINE void each_unit(const Body body, int64_t sample, int64_t units, bool is_missing) {
  if (is_missing) {  // outside of the loop, which would not be vectorized
    for (int64_t j = 0; j < units; ++j) body(sample, j, true);
    return;
  }
  COMMODITY_IVDEP
  for (int64_t j = 0; j < units; ++j) body(sample, j, false);
}

template <typename Body>
COMMODITY_SIMD void run_units(const Body& body, int64_t sample, int64_t units, bool is_missing) {
  each_unit(body, sample, units, is_missing);
}

template <typename Body>
COMMODITY_WIDE void run_units_wide(const Body& body, int64_t sample, int64_t units, bool is_missing) {
  each_unit(body, sample, units, is_missing);
}

template <typename Body>
void for_each_unit(const Tensor& missing, int64_t units, const Body& body) {
  constexpr int64_t cost = 16;  // of a unit relative to copying an element
  const int64_t grain = std::max<int64_t>(1, kGrain / cost / std::max<int64_t>(1, units));
  const bool* is_missing = missing.const_data_ptr<bool>();
  const auto run = has_wide_vectors() ? run_units_wide<Body> : run_units<Body>;
  parallel_for(0, missing.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(body, i, units, is_missing[i]);
  });
}

}  // namespace on_cpu
#endif

}  // namespace commodity
