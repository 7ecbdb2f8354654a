// The gradients of a variance recursion on either device. The adjoint of row t is dL/dh_{t+1} (or dL/dln h_{t+1}): the
// gradient with respect to the next variance through all later rows, by an affine recursion in reverse time. The
// parameters' gradients are sums over time of adjoint x regressor.
//
// A Model has rows, its pointers; column(panel, n), what is constant in a column; row(column, inputs), the terms of a
// row; map(column, row), the map of the adjoint; return_gradient(column, row, adjoint); and add_parameters(row,
// adjoint, sums) for omega, alpha, beta and gamma.
#pragma once
#include "kernel.h"
#include "variance.h"

namespace commodity {

constexpr int kTimeSums = kParameters - 1;  // all but the gradient of initial are sums over time

template <typename scalar_t>
struct VarianceRows {
  const scalar_t *grad, *r, *h, *alpha, *beta, *gamma;
  scalar_t* gradients;
  int64_t steps, assets, return_rows;  // return_rows: steps, or 0 if the gradient of the returns is not needed

  struct Inputs {
    scalar_t r, h, grad;
  };
  COMMODITY_INLINE Inputs inputs(int64_t i) const { return {read(r + i), read(h + i), read(grad + i)}; }
  COMMODITY_INLINE int64_t index(int64_t panel, int64_t t, int64_t n) const { return (panel * steps + t) * assets + n; }
  COMMODITY_INLINE scalar_t& gradient(int64_t panel, int64_t row, int64_t n) const {
    return gradients[(panel * (return_rows + kParameters) + row) * assets + n];
  }
};

#if defined(COMMODITY_GPU)
inline namespace on_gpu {

// The adjoint recursion as a scan: row t of the scan is row steps - 1 - t of the panel. Its sums are those over time.
template <typename Model>
struct AdjointScan {
  static constexpr int kSums = kTimeSums;
  struct Column {
    typename Model::Column parameters;
    int64_t first;  // of the rows of gradients: where its panel begins, less where that of the returns does
  };
  using Inputs = decltype(std::declval<const Model&>().rows.inputs(0));
  using Map = Affine<1, typename Model::number_t>;
  using State = typename Map::State;
  using scalar_t = std::remove_cvref_t<decltype(*std::declval<Model>().rows.gradients)>;
  Model model;
  double* pieces;

  // Of row t, value i in (batch, steps, columns): the value of the panel's row.
  COMMODITY_INLINE int64_t back(int64_t i, int64_t t) const {
    return i + (model.rows.steps - 1 - 2 * t) * model.rows.assets;
  }
  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const {
    const int64_t rows = model.rows.return_rows + kParameters - model.rows.steps;
    return {model.column(panel, n), panel * rows * model.rows.assets};
  }
  COMMODITY_INLINE Inputs load(const Column&, int64_t i, int64_t t) const { return model.rows.inputs(back(i, t)); }
  COMMODITY_INLINE Map map(const Column& c, const Inputs& inputs) const {
    return model.map(c.parameters, model.row(c.parameters, inputs));
  }
  COMMODITY_INLINE State initial(const Column&) const { return {}; }
  COMMODITY_INLINE void write(const Column& c, int64_t i, int64_t t, const Inputs& inputs, const State& adjoint,
                              const State& next) const {
    scalar_t* const gradient = model.rows.gradients + c.first + back(i, t);
    if (model.rows.return_rows)
      *gradient = model.return_gradient(c.parameters, model.row(c.parameters, inputs), adjoint.y[0]);
    if (t == model.rows.steps - 1) gradient[(model.rows.return_rows + kTimeSums) * model.rows.assets] = next.y[0];
  }
  COMMODITY_INLINE void add(const Column& c, const Inputs& inputs, const State& adjoint, double* sums) const {
    model.add_parameters(model.row(c.parameters, inputs), adjoint.y[0], sums);
  }
};

template <typename Model>
struct TotalSums {
  Model model;
  const double* pieces;
  int64_t count;

  COMMODITY_INLINE void operator()(int64_t panel, int64_t n, int64_t k) const {
    double sum = 0;
#pragma unroll 8
    for (int64_t piece = 0; piece < count; ++piece)
      sum += read(pieces + ((panel * count + piece) * kTimeSums + k) * model.rows.assets + n);
    model.rows.gradient(panel, model.rows.return_rows + k, n) = sum;
    if (count == 0) model.rows.gradient(panel, kTimeSums, n) = 0;
  }
};

template <typename Model>
void run_adjoint(const Tensor& gradients, int64_t batch, const Model& model) {
  using scalar_t = typename AdjointScan<Model>::scalar_t;
  constexpr int64_t rows = kSumRows<scalar_t>;
  const int64_t steps = model.rows.steps, assets = model.rows.assets, count = (steps + rows - 1) / rows;
  const Tensor pieces = scratch(gradients, batch * count * kTimeSums * assets);
  run_scan<scalar_t>(gradients, batch, steps, assets, AdjointScan<Model>{model, data_ptr<double>(pieces)});
  launch_grid(gradients, Grid(batch, assets, kTimeSums), TotalSums<Model>{model, data_ptr<double>(pieces), count});
}

}  // namespace on_gpu
#else
inline namespace on_cpu {

constexpr int64_t kPrefetchRows = 8;  // the hardware does not follow a stride of a whole row
constexpr int64_t kShortSum = 32;     // rows summed in the arithmetic of the model before float64 takes over

template <typename Model>
COMMODITY_SIMD void run_adjoint(const Model& body, int64_t panel, int64_t first, int64_t last) {
  using number_t = typename Model::number_t;
  using scalar_t = decltype(body.return_gradient({}, {}, {}));
  const Model model = body;  // its pointers in registers
  const int64_t width = last - first, steps = model.rows.steps, return_rows = model.rows.return_rows;
  number_t adjoint[kBlock] = {}, partial[kTimeSums][kBlock] = {};
  double total[kTimeSums][kBlock] = {};
  constexpr int kConstants = std::tuple_size_v<typename Model::Column>;
  number_t constants[kConstants][kBlock];
  for (int64_t n = 0; n < width; ++n)
    for (int k = 0; k < kConstants; ++k) constants[k][n] = model.column(panel, first + n)[k];
  for (int64_t t = steps - 1; t >= 0; --t) {
    for (int64_t n = 0; t >= kPrefetchRows && n < width; n += 64 / sizeof(scalar_t)) {
      const int64_t ahead = model.rows.index(panel, t - kPrefetchRows, first + n);
      for (const scalar_t* row : {model.rows.grad, model.rows.r, model.rows.h}) __builtin_prefetch(row + ahead);
      __builtin_prefetch(&model.rows.gradient(panel, return_rows ? t - kPrefetchRows : 0, first + n), 1);
    }
    // where the gradients of the returns are not needed, they pass through the first row, which ends as that of omega
    scalar_t* const d_returns = &model.rows.gradient(panel, return_rows ? t : 0, first);
    COMMODITY_IVDEP
    for (int64_t n = 0; n < width; ++n) {
      typename Model::Column column;
      for (int k = 0; k < kConstants; ++k) column[k] = constants[k][n];
      const auto row = model.row(column, model.rows.inputs(model.rows.index(panel, t, first + n)));
      const number_t next = adjoint[n];
      number_t sums[kTimeSums];
      for (int k = 0; k < kTimeSums; ++k) sums[k] = partial[k][n];
      d_returns[n] = model.return_gradient(column, row, next);
      model.add_parameters(row, next, sums);
      for (int k = 0; k < kTimeSums; ++k) partial[k][n] = sums[k];
      adjoint[n] = model.map(column, row).apply({next}).y[0];
    }
    for (int k = 0; t % kShortSum == 0 && k < kTimeSums; ++k)
      for (int64_t n = 0; n < width; ++n) total[k][n] += partial[k][n], partial[k][n] = 0;
  }
  for (int64_t n = 0; n < width; ++n) {
    for (int k = 0; k < kTimeSums; ++k) model.rows.gradient(panel, return_rows + k, first + n) = total[k][n];
    model.rows.gradient(panel, return_rows + kTimeSums, first + n) = adjoint[n];
  }
}

template <typename Model>
void run_adjoint(const Tensor&, int64_t batch, const Model& model) {
  for_each_block(Panels(batch, model.rows.steps, model.rows.assets),
                 [&](int64_t panel, int64_t first, int64_t last) { run_adjoint(model, panel, first, last); });
}

}  // namespace on_cpu
#endif

template <template <typename> class Model>
Tensor variance_backward(const char* operation, const Tensor& grad_, const Tensor& returns_, const Tensor& alpha,
                         const Tensor& beta, const Tensor& gamma, const Tensor& h_, bool needs_returns) {
  check_same(operation, grad_, returns_);
  check_same(operation, h_, returns_);
  const Tensor grad = contiguous(grad_), returns = contiguous(returns_), h = contiguous(h_);
  const auto parameters = check_parameters(operation, returns, {alpha, beta, gamma});
  const int64_t steps = returns.size(-2);
  std::vector<int64_t> shape(returns.sizes().begin(), returns.sizes().end());
  shape[shape.size() - 2] = (needs_returns ? steps : 0) + kParameters;
  Tensor gradients = new_output(returns, shape);
  dispatch(operation, returns, [&]<typename scalar_t>() {
    const auto data = [](const Tensor& x) { return x.const_data_ptr<scalar_t>(); };
    const auto [alpha_data, beta_data, gamma_data] = parameter_pointers<scalar_t>(parameters);
    // the parameters have gradients even where T = 0
    run_adjoint(
        gradients, Panels(gradients).batch,
        Model<scalar_t>{{data(grad), data(returns), data(h), alpha_data, beta_data, gamma_data,
                         gradients.mutable_data_ptr<scalar_t>(), steps, returns.size(-1), needs_returns ? steps : 0}});
  });
  return gradients;
}

}  // namespace commodity
