// One step of the long-long-term memory, from its gates on, and its adjoint.
#include "cells.h"
#include "device.h"

using namespace commodity;

namespace {

template <typename scalar_t>
struct Step {
  const scalar_t *gates, *h, *c;
  const bool* missing;
  scalar_t *to_h, *to_c;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t at) const {
    const int64_t sample = at / hidden, first = 3 * sample * hidden + at % hidden;
    const scalar_t z[3] = {read(gates + first), read(gates + first + hidden), read(gates + first + 2 * hidden)};
    scalar_t now_c, now_h;
    Lltm::step(z, read(c + at), now_c, now_h);
    to_c[at] = missing[sample] ? read(c + at) : now_c;
    to_h[at] = missing[sample] ? read(h + at) : now_h;
  }
};

template <typename scalar_t>
struct Pull {
  const scalar_t *grad_h, *grad_c, *gates, *c;
  const bool* missing;
  scalar_t *d_gates, *d_h, *d_c;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t at) const {
    const int64_t sample = at / hidden, first = 3 * sample * hidden + at % hidden;
    const scalar_t z[3] = {read(gates + first), read(gates + first + hidden), read(gates + first + 2 * hidden)};
    scalar_t d_z[3], moved, h, d_before;
    Lltm::step(z, read(c + at), moved, h);
    Lltm::pull(z, read(c + at), moved, read(grad_h + at), read(grad_c + at), d_z, d_before);
    const bool gone = missing[sample];
    for (int g = 0; g < 3; ++g) d_gates[first + g * hidden] = gone ? 0 : d_z[g];
    d_h[at] = gone ? read(grad_h + at) : 0;
    d_c[at] = gone ? read(grad_c + at) : d_before;
  }
};

void check(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  check_same(name, h, c);
  const int64_t hidden = h.size(-1), samples = hidden ? h.numel() / hidden : 0;
  STD_TORCH_CHECK(gates.numel() == 3 * h.numel() && missing.numel() == samples &&
                      gates.scalar_type() == h.scalar_type() &&
                      missing.scalar_type() == torch::headeronly::ScalarType::Bool,
                  name, ": gates (..., 3 H) of the dtype of the states (..., H), missing (...) of bool");
}

std::tuple<Tensor, Tensor> lltm_cell(const Tensor& gates_, const Tensor& missing_, const Tensor& h_, const Tensor& c_) {
  check("lltm_cell", gates_, missing_, h_, c_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), h = contiguous(h_), c = contiguous(c_);
  Tensor to_h = new_empty(h, h.sizes()), to_c = new_empty(c, c.sizes());
  dispatch("lltm_cell", h, [&]<typename scalar_t>() {
    launch(
        h, h.numel(),
        Step<scalar_t>{gates.const_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(),
                       missing.const_data_ptr<bool>(), data_ptr<scalar_t>(to_h), data_ptr<scalar_t>(to_c), h.size(-1)});
  });
  return {to_h, to_c};
}

std::tuple<Tensor, Tensor, Tensor> lltm_cell_backward(const Tensor& grad_h_, const Tensor& grad_c_,
                                                      const Tensor& gates_, const Tensor& missing_, const Tensor& c_) {
  check("lltm_cell_backward", gates_, missing_, grad_h_, c_);
  check_same("lltm_cell_backward", grad_c_, c_);
  const Tensor gates = contiguous(gates_), missing = contiguous(missing_), c = contiguous(c_);
  const Tensor grad_h = contiguous(grad_h_), grad_c = contiguous(grad_c_);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h = new_empty(c, c.sizes()), d_c = new_empty(c, c.sizes());
  dispatch("lltm_cell_backward", c, [&]<typename scalar_t>() {
    launch(
        c, c.numel(),
        Pull<scalar_t>{grad_h.const_data_ptr<scalar_t>(), grad_c.const_data_ptr<scalar_t>(),
                       gates.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(), missing.const_data_ptr<bool>(),
                       data_ptr<scalar_t>(d_gates), data_ptr<scalar_t>(d_h), data_ptr<scalar_t>(d_c), c.size(-1)});
  });
  return {d_gates, d_h, d_c};
}

}  // namespace

COMMODITY_CUDA(lltm_cell)
COMMODITY_CUDA(lltm_cell_backward)
