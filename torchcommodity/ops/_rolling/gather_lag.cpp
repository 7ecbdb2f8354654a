// y_t = x_{t - since_t} for (..., T, N), and its transpose.
#include "native.h"

using namespace commodity;

namespace {

template <typename scalar_t>
void look(const scalar_t* x, const int64_t* since, scalar_t* y, int64_t t, int64_t stride, int64_t width, bool spread) {
  for (int64_t n = 0, at = t * stride; n < width; ++n, ++at) {
    const bool known = since[at] >= 0 && since[at] <= t;
    const int64_t there = (t - since[at]) * stride + n;
    if (spread && known) y[there] += x[at];
    if (!spread) y[at] = known ? x[there] : 0;
  }
}

Tensor gather_lag(const Tensor& x_, const Tensor& since_, bool spread) {
  STD_TORCH_CHECK(x_.dim() >= 2 && x_.sizes().equals(since_.sizes()), "gather_lag: x and since must be (..., T, N)");
  STD_TORCH_CHECK(since_.scalar_type() == torch::headeronly::ScalarType::Long, "gather_lag: since must be int64");
  const Tensor x = contiguous(x_), since = contiguous(since_);
  Tensor y = on_huge_pages(new_empty(x, x.sizes()));
  const Panels panels(x);
  THO_DISPATCH_V2(x.scalar_type(), "gather_lag", AT_WRAP([&] {
                    const scalar_t* from = x.const_data_ptr<scalar_t>();
                    const int64_t* ago = since.const_data_ptr<int64_t>();
                    scalar_t* to = y.mutable_data_ptr<scalar_t>();
                    for_each_block(panels, [&](int64_t panel, int64_t first, int64_t last) {
                      const int64_t at = panel * panels.size() + first;
                      for (int64_t t = 0; spread && t < panels.steps; ++t)
                        std::fill_n(to + at + t * panels.assets, last - first, scalar_t(0));
                      for (int64_t t = 0; t < panels.steps; ++t)
                        look(from + at, ago + at, to + at, t, panels.assets, last - first, spread);
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

}  // namespace

COMMODITY_OPERATOR(gather_lag, "(Tensor x, Tensor since, bool spread) -> Tensor")
