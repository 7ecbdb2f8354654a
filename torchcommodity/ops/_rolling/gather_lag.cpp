// y_t = x_{t - lag_t} for (..., T, N), and the transpose (`scatter`), which adds x_t to y_{t - lag_t}.
#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
void gather_row(const scalar_t* x, const int64_t* lag, scalar_t* y, int64_t t, int64_t stride, int64_t width,
                bool scatter) {
  for (int64_t n = 0, i = t * stride; n < width; ++n, ++i) {
    const bool valid = lag[i] >= 0 && lag[i] <= t;
    const int64_t source = (t - lag[i]) * stride + n;
    if (scatter && valid) y[source] += x[i];
    if (!scatter) y[i] = valid ? x[source] : 0;
  }
}

Tensor gather_lag(const Tensor& x_, const Tensor& lag_, bool scatter) {
  STD_TORCH_CHECK(x_.dim() >= 2 && x_.sizes().equals(lag_.sizes()), "gather_lag: x and lag must be (..., T, N)");
  STD_TORCH_CHECK(lag_.scalar_type() == torch::headeronly::ScalarType::Long, "gather_lag: lag must be int64");
  const Tensor x = contiguous(x_), lag = contiguous(lag_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  dispatch("gather_lag", x, [&]<typename scalar_t>() {
    const scalar_t* input = x.const_data_ptr<scalar_t>();
    const int64_t* lags = lag.const_data_ptr<int64_t>();
    scalar_t* output = y.mutable_data_ptr<scalar_t>();
    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
      const int64_t offset = panel * panels.size() + first;
      for (int64_t t = 0; scatter && t < panels.steps; ++t)
        std::fill_n(output + offset + t * panels.assets, last - first, scalar_t(0));
      for (int64_t t = 0; t < panels.steps; ++t)
        gather_row(input + offset, lags + offset, output + offset, t, panels.assets, last - first, scatter);
    });
  });
  return y;
}

}  // namespace

COMMODITY_OPERATOR(gather_lag, "(Tensor x, Tensor lag, bool scatter=False) -> Tensor")
