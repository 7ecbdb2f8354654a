// One step of the long-long-term memory, from its gates on, and its adjoint.
#include "cells.h"
#include "native.h"

using namespace commodity;

namespace {

constexpr int64_t kDear = 16;  // elements of a copy that one of a cell costs, for `kGrain`

template <typename scalar_t>
COMMODITY_SIMD void step(int64_t hidden, const scalar_t* __restrict gates, const scalar_t* __restrict c,
                         scalar_t* __restrict to_h, scalar_t* __restrict to_c) {
  for (int64_t j = 0; j < hidden; ++j) {
    const scalar_t z[3] = {gates[j], gates[hidden + j], gates[2 * hidden + j]};
    Lltm::step(z, c[j], to_c[j], to_h[j]);
  }
}

template <typename scalar_t>
COMMODITY_SIMD void pull(int64_t hidden, const scalar_t* __restrict grad_h, const scalar_t* __restrict grad_c,
                         const scalar_t* __restrict gates, const scalar_t* __restrict c, scalar_t* __restrict d_gates,
                         scalar_t* __restrict d_c) {
  for (int64_t j = 0; j < hidden; ++j) {
    const scalar_t z[3] = {gates[j], gates[hidden + j], gates[2 * hidden + j]};
    scalar_t d_z[3], moved, h;
    Lltm::step(z, c[j], moved, h);
    Lltm::pull(z, c[j], moved, grad_h[j], grad_c[j], d_z, d_c[j]);
    d_gates[j] = d_z[0], d_gates[hidden + j] = d_z[1], d_gates[2 * hidden + j] = d_z[2];
  }
}

void check(const char* name, const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  check_same(name, h, c);
  const int64_t hidden = h.size(-1), samples = hidden ? h.numel() / hidden : 0;
  STD_TORCH_CHECK(gates.numel() == 3 * h.numel() && missing.numel() == samples &&
                      gates.scalar_type() == h.scalar_type() &&
                      missing.scalar_type() == torch::headeronly::ScalarType::Bool,
                  name, ": gates (..., 3 H) of the dtype of the states (..., H), missing (...) of bool");
}

template <typename Body>
void for_each_sample(int64_t samples, int64_t hidden, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / kDear / std::max<int64_t>(1, hidden));
  torch::stable::parallel_for(0, samples, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, i * hidden);
  });
}

template <typename scalar_t>
void forward(const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c, Tensor& to_h, Tensor& to_c) {
  const int64_t hidden = h.size(-1);
  const bool* gone = missing.const_data_ptr<bool>();
  const scalar_t *z = gates.const_data_ptr<scalar_t>(), *from_h = h.const_data_ptr<scalar_t>();
  const scalar_t* from_c = c.const_data_ptr<scalar_t>();
  scalar_t *into_h = to_h.mutable_data_ptr<scalar_t>(), *into_c = to_c.mutable_data_ptr<scalar_t>();
  for_each_sample(missing.numel(), hidden, [&](int64_t i, int64_t at) {
    if (!gone[i]) return step(hidden, z + 3 * at, from_c + at, into_h + at, into_c + at);
    std::copy_n(from_h + at, hidden, into_h + at);
    std::copy_n(from_c + at, hidden, into_c + at);
  });
}

template <typename scalar_t>
void backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& missing, const Tensor& c,
              Tensor& d_gates, Tensor& d_h, Tensor& d_c) {
  const int64_t hidden = c.size(-1);
  const bool* gone = missing.const_data_ptr<bool>();
  const scalar_t *g_h = grad_h.const_data_ptr<scalar_t>(), *g_c = grad_c.const_data_ptr<scalar_t>();
  const scalar_t *z = gates.const_data_ptr<scalar_t>(), *before = c.const_data_ptr<scalar_t>();
  scalar_t *to_z = d_gates.mutable_data_ptr<scalar_t>(), *to_h = d_h.mutable_data_ptr<scalar_t>();
  scalar_t* to_c = d_c.mutable_data_ptr<scalar_t>();
  for_each_sample(missing.numel(), hidden, [&](int64_t i, int64_t at) {
    if (gone[i]) {
      std::fill_n(to_z + 3 * at, 3 * hidden, scalar_t(0));
      std::copy_n(g_h + at, hidden, to_h + at);
      std::copy_n(g_c + at, hidden, to_c + at);
    } else {
      std::fill_n(to_h + at, hidden, scalar_t(0));
      pull(hidden, g_h + at, g_c + at, z + 3 * at, before + at, to_z + 3 * at, to_c + at);
    }
  });
}

std::tuple<Tensor, Tensor> lltm_cell(const Tensor& gates, const Tensor& missing, const Tensor& h, const Tensor& c) {
  check("lltm_cell", gates, missing, h, c);
  Tensor to_h = new_empty(h, h.sizes()), to_c = new_empty(c, c.sizes());
  THO_DISPATCH_V2(h.scalar_type(), "lltm_cell", AT_WRAP([&] {
                    forward<scalar_t>(contiguous(gates), contiguous(missing), contiguous(h), contiguous(c), to_h, to_c);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {to_h, to_c};
}

std::tuple<Tensor, Tensor, Tensor> lltm_cell_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
                                                      const Tensor& missing, const Tensor& c) {
  check("lltm_cell_backward", gates, missing, grad_h, c);
  check_same("lltm_cell_backward", grad_c, c);
  Tensor d_gates = new_empty(gates, gates.sizes()), d_h = new_empty(c, c.sizes()), d_c = new_empty(c, c.sizes());
  THO_DISPATCH_V2(c.scalar_type(), "lltm_cell_backward", AT_WRAP([&] {
                    backward<scalar_t>(contiguous(grad_h), contiguous(grad_c), contiguous(gates), contiguous(missing),
                                       contiguous(c), d_gates, d_h, d_c);
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {d_gates, d_h, d_c};
}

}  // namespace

COMMODITY_OPERATOR(lltm_cell, "(Tensor gates, Tensor missing, Tensor h, Tensor c) -> (Tensor, Tensor)")
COMMODITY_OPERATOR(lltm_cell_backward,
                   "(Tensor grad_h, Tensor grad_c, Tensor gates, Tensor missing, Tensor c) -> (Tensor, Tensor, Tensor)")
