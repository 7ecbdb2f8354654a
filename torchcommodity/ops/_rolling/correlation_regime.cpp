// Shift of a correlation structure against `lag` rows ago, and the regime number, both (..., T). Input: matrices
// (..., T, N, N), without their diagonal, or pairs (..., T, 1, P) if packed.
#include "native.h"

using namespace commodity;

namespace {

// Mean absolute change of the pairs that are finite in both rows.
template <typename scalar_t>
scalar_t mean_change(const scalar_t* current, const scalar_t* previous, int64_t rows, int64_t columns, bool packed) {
  double total = 0;
  int64_t pairs = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double change = std::abs(static_cast<double>(current[i * columns + j]) - previous[i * columns + j]);
      const bool valid = (packed || i != j) && std::isfinite(change);
      total += valid ? change : 0;
      pairs += valid;
    }
  return pairs ? total / pairs : NAN;
}

template <typename scalar_t>
void number_regimes(const scalar_t* shift, int64_t* regime, int64_t steps, double threshold, int64_t lag) {
  int64_t number = 0, age = lag;
  for (int64_t t = 0; t < steps; ++t, ++age) {
    if (shift[t] > static_cast<scalar_t>(threshold) && age >= lag) ++number, age = 0;
    regime[t] = number;
  }
}

std::tuple<Tensor, Tensor> correlation_regime(const Tensor& correlation_, double threshold, int64_t lag, bool packed) {
  STD_TORCH_CHECK(correlation_.dim() >= 3 && lag >= 1, "correlation_regime: correlation (..., T, N, N), lag >= 1");
  const Tensor correlation = contiguous(correlation_);
  const std::vector<int64_t> shape(correlation.sizes().begin(), correlation.sizes().end() - 2);
  Tensor shift = new_empty(correlation, shape);
  Tensor regime = new_empty(correlation, shape, torch::headeronly::ScalarType::Long);
  const int64_t steps = shape.back(), rows = correlation.size(-2), columns = correlation.size(-1);
  const int64_t size = rows * columns;
  const int64_t batch = shift.numel() ? shift.numel() / steps : 0;
  dispatch("correlation_regime", correlation, [&]<typename scalar_t>() {
    const scalar_t* input = correlation.const_data_ptr<scalar_t>();
    scalar_t* output = shift.mutable_data_ptr<scalar_t>();
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, size));
    parallel_for(0, batch * steps, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        output[i] =
            i % steps < lag ? NAN : mean_change(input + i * size, input + (i - lag) * size, rows, columns, packed);
    });
    for (int64_t i = 0; i < batch; ++i)
      number_regimes(output + i * steps, regime.mutable_data_ptr<int64_t>() + i * steps, steps, threshold, lag);
  });
  return {shift, regime};
}

}  // namespace

COMMODITY_OPERATOR(correlation_regime,
                   "(Tensor correlation, float threshold=0.3, SymInt lag=21, bool packed=False) -> (Tensor, Tensor)")
