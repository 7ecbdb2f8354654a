// One LLTM step, forward and backward: [h, x] in one pass, ATen's matrix product, then the cell of cells.h.
#include <type_traits>

#include "aten.h"
#include "cell.h"

using namespace commodity;

namespace {

// Copies a row; true if it contains a NaN.
template <typename scalar_t>
COMMODITY_SIMD bool copy_row(int64_t size, const scalar_t* __restrict from, scalar_t* __restrict to) {
  using Flag = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;  // as wide as a value, to vectorize
  Flag nan = 0;
  for (int64_t j = 0; j < size; ++j) {
    to[j] = from[j];
    nan |= from[j] != from[j];
  }
  return nan;
}

// [h, x] of every sample, with zeros for an x that contains a NaN: that sample is missing.
template <typename scalar_t>
void join(const Tensor& input, const Tensor& h, Tensor& joined, Tensor& missing) {
  const int64_t features = input.size(1), hidden = h.size(1), columns = hidden + features;
  const scalar_t *x_in = input.const_data_ptr<scalar_t>(), *h_in = h.const_data_ptr<scalar_t>();
  scalar_t* out = joined.mutable_data_ptr<scalar_t>();
  bool* is_missing = missing.mutable_data_ptr<bool>();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns));
  parallel_for(0, input.size(0), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      scalar_t* row = out + i * columns;
      std::copy_n(h_in + i * hidden, hidden, row);
      is_missing[i] = copy_row(features, x_in + i * features, row + hidden);
      if (is_missing[i]) std::fill_n(row + hidden, features, scalar_t(0));
    }
  });
}

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;  // h', c', [h, x], missing, gates

Outputs lltm_cell(const Tensor& input, const Tensor& h, const Tensor& c, const Tensor& weight,
                  const std::optional<Tensor>& bias) {
  check_inputs<Lltm>("lltm_cell", input, h, weight);
  Tensor joined = new_empty(h, {h.size(0), h.size(1) + input.size(1)});
  Tensor missing = new_empty(h, {h.size(0)}, torch::headeronly::ScalarType::Bool);
  THO_DISPATCH_V2(h.scalar_type(), "lltm_cell",
                  AT_WRAP([&] { join<scalar_t>(contiguous(input), contiguous(h), joined, missing); }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  const Tensor gates = call_aten("aten::linear", joined, weight, bias);
  const auto [h_next, c_next] = run_cell<Lltm>("lltm_cell", gates, missing, h, c);
  return {h_next, c_next, joined, missing, gates};
}

auto lltm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return run_cell_backward<Lltm>("lltm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_OPERATOR(lltm_cell,
                   "(Tensor input, Tensor h, Tensor c, Tensor weight, Tensor? bias=None) -> (Tensor, Tensor, Tensor, "
                   "Tensor, Tensor)")
COMMODITY_OPERATOR(lltm_cell_backward,
                   "(Tensor grad_h, Tensor grad_c, Tensor gates, Tensor missing, Tensor c) -> (Tensor, Tensor, Tensor)")
