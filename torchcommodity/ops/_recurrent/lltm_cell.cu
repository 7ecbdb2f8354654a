// One LLTM step, forward and backward: [h, x] in one pass, ATen's matrix product, then the cell of cells.h.
#include "aten.h"
#include "cell_device.h"

using namespace commodity;

namespace {

// Counts the NaNs of a sample's input: one warp per sample.
template <typename scalar_t>
struct FindMissing {
  static constexpr int kSums = 1;
  const scalar_t* input;
  bool* missing;
  int64_t features;

  COMMODITY_INLINE void add(int64_t sample, int64_t j, double* sums) const {
    const double x = read(input + sample * features + j);
    sums[0] += x != x;
  }
  COMMODITY_INLINE void finish(int64_t sample, const double* sums) const { missing[sample] = sums[0] > 0; }
};

// [h, x], with zeros for a missing x.
template <typename scalar_t>
struct Join {
  const scalar_t *input, *h;
  const bool* missing;
  scalar_t* joined;
  int64_t features, hidden;

  COMMODITY_INLINE void operator()(int64_t i) const {
    const int64_t sample = i / (hidden + features), j = i % (hidden + features);
    if (j < hidden)
      joined[i] = h[sample * hidden + j];
    else
      joined[i] = missing[sample] ? scalar_t(0) : input[sample * features + j - hidden];
  }
};

using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;  // h', c', [h, x], missing, gates

Outputs lltm_cell(const Tensor& input_, const Tensor& h_, const Tensor& c, const Tensor& weight,
                  const std::optional<Tensor>& bias) {
  check_inputs<Lltm>("lltm_cell", input_, h_, weight);
  const Tensor input = contiguous(input_), h = contiguous(h_);
  const int64_t samples = h.size(0), hidden = h.size(1), features = input.size(1);
  Tensor joined = new_empty(h, {samples, hidden + features});
  Tensor missing = new_empty(h, {samples}, torch::headeronly::ScalarType::Bool);
  dispatch("lltm_cell", h, [&]<typename scalar_t>() {
    launch_rows(h, samples, features,
                FindMissing<scalar_t>{input.const_data_ptr<scalar_t>(), data_ptr<bool>(missing), features});
    launch(h, joined.numel(),
           Join<scalar_t>{input.const_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(), data_ptr<bool>(missing),
                          data_ptr<scalar_t>(joined), features, hidden});
  });
  const Tensor gates = call_aten("aten::linear", joined, weight, bias);
  const auto [h_next, c_next] = launch_cell<Lltm>("lltm_cell", gates, missing, h, c);
  return {h_next, c_next, joined, missing, gates};
}

auto lltm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing,
                        const Tensor& c) {
  return launch_cell_backward<Lltm>("lltm_cell_backward", grad_h, grad_c, gates, missing, c);
}

}  // namespace

COMMODITY_CUDA(lltm_cell)
COMMODITY_CUDA(lltm_cell_backward)
