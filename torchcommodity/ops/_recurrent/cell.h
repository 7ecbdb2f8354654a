// One step of a cell of cells.h, forward and backward, on the CPU and on a GPU: products by BLAS, and the gates.
#pragma once
#include "checks.h"
#include "small_products.h"

namespace commodity {
inline namespace COMMODITY_DEVICE {

// Pointers to samples (., H) and their gates (., gates * H); `gates` becomes gates + recurrent.
template <typename Cell, typename scalar_t>
struct CellStep {
  static constexpr int G = Cell::kGates;
  const scalar_t *recurrent, *h, *c;
  scalar_t *gates, *h_next, *c_next;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    const int64_t first = G * sample * hidden + j, i = sample * hidden + j;
    scalar_t z[G], a[G], c_value, h_value;
    for (int g = 0; g < G; ++g) z[g] = gates[first + g * hidden] + recurrent[first + g * hidden];
    const scalar_t c_previous = c[i], h_previous = h[i];
    Cell::activate(z, a);
    Cell::step(a, c_previous, c_value, h_value);
    for (int g = 0; g < G; ++g) gates[first + g * hidden] = is_missing ? scalar_t(0) : z[g];
    c_next[i] = is_missing ? c_previous : c_value;
    h_next[i] = is_missing ? h_previous : h_value;
  }
};

// Gradients of the gates and of c, which is that of c' in a missing sample.
template <typename Cell, typename scalar_t>
struct CellStepBackward {
  static constexpr int G = Cell::kGates;
  const scalar_t *grad_h, *grad_c, *gates, *c;
  scalar_t *d_gates, *d_c;
  int64_t hidden;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    const int64_t first = G * sample * hidden + j, i = sample * hidden + j;
    scalar_t z[G], a[G], d_z[G], c_next, h, d_c_previous;
    for (int g = 0; g < G; ++g) z[g] = gates[first + g * hidden];
    const scalar_t c_previous = c[i], g_h = grad_h[i], g_c = grad_c[i];
    Cell::activate(z, a);
    Cell::step(a, c_previous, c_next, h);
    Cell::backward(a, c_previous, c_next, g_h, g_c, d_z, d_c_previous);
    for (int g = 0; g < G; ++g) d_gates[first + g * hidden] = is_missing ? scalar_t(0) : d_z[g];
    d_c[i] = is_missing ? g_c : d_c_previous;
  }
};

// Adds values to those of the samples that are missing, or of those that are not.
template <typename scalar_t>
struct AddToSamples {
  const scalar_t* values;
  scalar_t* to;
  int64_t width;
  bool missing;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    if (is_missing == missing) to[sample * width + j] += values[sample * width + j];
  }
};

// Samples, with zeros where they are missing.
template <typename scalar_t>
struct CopyPresent {
  const scalar_t* from;
  scalar_t* to;
  int64_t width;

  COMMODITY_INLINE void operator()(int64_t sample, int64_t j, bool is_missing) const {
    to[sample * width + j] = is_missing ? scalar_t(0) : from[sample * width + j];
  }
};

// The states (..., H), the gates (..., gates * H) and whether a sample is missing (...).
using CellOutputs = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <typename Cell>
CellOutputs run_cell(const char* name, const Tensor& input_, const Tensor& h_, const Tensor& c_,
                     const Tensor& weight_ih, const Tensor& weight_hh, const std::optional<Tensor>& bias_ih,
                     const std::optional<Tensor>& bias_hh) {
  check_layer<Cell>(name, input_, h_, c_, weight_ih, weight_hh, bias_ih, false);
  check_layer<Cell>(name, input_, h_, c_, weight_ih, weight_hh, bias_hh, false);
  const Tensor input = as_contiguous(input_), h = as_contiguous(h_), c = as_contiguous(c_);
  const Tensor gates = project(input, weight_ih, bias_ih);
  const Tensor recurrent = project(h, weight_hh, bias_hh);
  const int64_t hidden = h.size(-1);
  Tensor h_next = new_empty(h, h.sizes()), c_next = new_empty(h, h.sizes()), missing = find_missing(input);
  dispatch(name, h, [&]<typename scalar_t>() {
    for_each_unit(
        missing, hidden,
        CellStep<Cell, scalar_t>{recurrent.const_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(),
                                 c.const_data_ptr<scalar_t>(), gates.mutable_data_ptr<scalar_t>(),
                                 h_next.mutable_data_ptr<scalar_t>(), c_next.mutable_data_ptr<scalar_t>(), hidden});
  });
  return {h_next, c_next, gates, missing};
}

// The backward pass of a step: dz from the gradients of h', c' and the gates, where there are any, and from it those of
// the arguments that need one.
template <typename Cell>
class CellBackward {
 public:
  CellBackward(const char* name, const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_c,
               const std::optional<Tensor>& grad_gates, const Tensor& input, const Tensor& h, const Tensor& c_,
               const Tensor& gates_, const Tensor& missing_)
      : name_(name),
        input_(as_contiguous(input)),
        h_(as_contiguous(h)),
        grad_h_(grad_h ? as_contiguous(*grad_h) : new_zeros(c_, c_.sizes())),
        missing_(as_contiguous(missing_)),
        samples_(missing_.numel()),
        hidden_(c_.size(-1)),
        has_missing_(may_have_missing(missing_)) {
    check_cell_backward<Cell>(name, grad_h, grad_c, grad_gates, gates_, missing_, c_);
    STD_TORCH_CHECK(input.dim() == c_.dim() && h.sizes().equals(c_.sizes()) &&
                        input.scalar_type() == c_.scalar_type() && h.scalar_type() == c_.scalar_type() &&
                        input.numel() == samples_ * input.size(-1),
                    name, ": input must be (..., F) and h (..., H), as c");
    const Tensor grad_c_value = grad_c ? as_contiguous(*grad_c) : new_zeros(c_, c_.sizes());
    const Tensor c = as_contiguous(c_), gates = as_contiguous(gates_);
    d_c = new_empty(c, c.sizes()), d_gates_ = new_empty(gates, gates.sizes());
    dispatch(name, c, [&]<typename scalar_t>() {
      for_each_unit(missing_, hidden_,
                    CellStepBackward<Cell, scalar_t>{
                        grad_h_.const_data_ptr<scalar_t>(), grad_c_value.const_data_ptr<scalar_t>(),
                        gates.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(),
                        d_gates_.mutable_data_ptr<scalar_t>(), d_c.mutable_data_ptr<scalar_t>(), hidden_});
    });
    if (grad_gates) add_to_samples(as_contiguous(*grad_gates), d_gates_, width(), false);
  }

  Tensor d_c;

  Tensor d_input(const Tensor& weight) const { return state_gradient(input_, weight); }

  Tensor d_h(const Tensor& weight) const {
    const Tensor d = state_gradient(h_, weight);
    if (has_missing_) add_to_samples(grad_h_, d, hidden_, true);
    return d;
  }

  Tensor d_weight_ih() const {
    const Tensor d = new_empty(d_gates_, {width(), input_.size(-1)});
    write_d_weight_ih(d);
    return d;
  }

  Tensor d_weight_hh() const {
    const Tensor d = new_empty(d_gates_, {width(), hidden_});
    write_d_weight_hh(d);
    return d;
  }

  // That of [W_hh, W_ih].
  Tensor d_weight() const {
    const int64_t columns = hidden_ + input_.size(-1);
    const Tensor d = new_empty(d_gates_, {width(), columns});
    write_d_weight_hh(as_matrix(d, width(), hidden_, columns, 1));
    write_d_weight_ih(as_matrix(d, width(), input_.size(-1), columns, 1, hidden_));
    return d;
  }

  Tensor d_bias() const { return torch::stable::sum(rows(d_gates_), std::array<int64_t, 1>{0}); }

  Tensor none() const { return new_empty(d_gates_, {0}); }

 private:
  const char* name_;
  Tensor input_, h_, grad_h_, missing_, d_gates_;
  int64_t samples_, hidden_;
  bool has_missing_;

  int64_t width() const { return Cell::kGates * hidden_; }

  Tensor rows(const Tensor& x) const { return as_matrix(x, samples_, x.size(-1), x.size(-1), 1); }

  Tensor state_gradient(const Tensor& like, const Tensor& weight) const {
    const Tensor d = new_empty(like, like.sizes());
    multiply_few(rows(d_gates_), weight, rows(d));
    return d;
  }

  void write_d_weight_hh(const Tensor& d) const { write_d_weight(h_, d); }

  // dz is zero in a missing sample, but zero times NaN is NaN.
  void write_d_weight_ih(const Tensor& d) const {
    if (!has_missing_) return write_d_weight(input_, d);
    const int64_t features = input_.size(-1);
    const Tensor present = new_empty(input_, input_.sizes());
    dispatch(name_, input_, [&]<typename scalar_t>() {
      for_each_unit(
          missing_, features,
          CopyPresent<scalar_t>{input_.const_data_ptr<scalar_t>(), present.mutable_data_ptr<scalar_t>(), features});
    });
    write_d_weight(present, d);
  }

  void write_d_weight(const Tensor& x, const Tensor& d) const {
    multiply_few(as_matrix(d_gates_, width(), samples_, 1, width()), rows(x), d);
  }

  void add_to_samples(const Tensor& values, const Tensor& to, int64_t width, bool missing) const {
    dispatch(name_, to, [&]<typename scalar_t>() {
      for_each_unit(
          missing_, width,
          AddToSamples<scalar_t>{values.const_data_ptr<scalar_t>(), to.mutable_data_ptr<scalar_t>(), width, missing});
    });
  }
};

}  // namespace COMMODITY_DEVICE
}  // namespace commodity
