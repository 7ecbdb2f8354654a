// A series program over the next rows (..., k, N), from the state after the rows before: the bits of one pass over all.
#include "block_runner.h"

using namespace commodity;
using namespace commodity::series;

namespace {

using Optional = const std::optional<Tensor>&;

std::vector<int64_t> state_shape(const Program& program, const Tensor& x) {
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape[shape.size() - 2] = program.states;
  return shape;
}

std::tuple<Tensor, Tensor> series_step(const Tensor& x0, Optional x1, Optional x2, Optional x3, Optional x4,
                                       Optional x5, Optional x6, Optional x7, Optional state_, std::string text) {
  using torch::headeronly::ScalarType;
  STD_TORCH_CHECK(x0.dim() >= 2, "series_step: rows must be (..., k, N)");
  const std::shared_ptr<const Program> program = parse(text);
  const Panel panel("series_step", program->inputs, x0, {&x1, &x2, &x3, &x4, &x5, &x6, &x7});
  const std::vector<int64_t> shape = state_shape(*program, x0);
  const std::optional<Tensor> before = state_ ? std::optional(contiguous(*state_)) : std::nullopt;
  STD_TORCH_CHECK(!before || (before->scalar_type() == ScalarType::Double && before->sizes().equals(shape)),
                  "series_step: state must be float64 of shape (..., ", program->states,
                  ", N), as an earlier step of this program returned it");
  Tensor y = new_result(*program, panel), after = new_empty(x0, shape, ScalarType::Double);
  const int64_t outputs = int64_t(program->outputs.size()), assets = panel.shape.assets;
  // the panels of a batch are counted without the rows, of which there may be none
  const Panels states(after);
  const double* old_state = before ? before->const_data_ptr<double>() : nullptr;
  double* new_state = after.mutable_data_ptr<double>();
  dispatch_types(*program, x0, [&](auto scalar, auto result, double absent) {
    auto* data = y.mutable_data_ptr<decltype(result)>();
    for_each_block(states, [&](int64_t batch, int64_t first, int64_t last) {
      const int64_t columns = last - first, width = padded(columns);
      TileRunner runner(*program, width, tile_rows(width, panel.shape.steps), false, false);
      if (!old_state) runner.start();
      double* state = runner.state().data();
      const int64_t offset = batch * program->states * assets + first;
      for (int64_t s = 0; old_state && s < program->states; ++s)
        std::copy_n(old_state + offset + s * assets, columns, state + s * width);
      run_rows<decltype(scalar)>(*program, panel, batch, first, last, runner, int64_t(state[0]),
                                 data + batch * outputs * panel.shape.size() + first, absent);
      for (int64_t n = 0; n < width; ++n) state[n] += double(panel.shape.steps);
      for (int64_t s = 0; s < program->states; ++s)
        std::copy_n(state + s * width, columns, new_state + offset + s * assets);
    });
  });
  return {y, after};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(commodity, m) {
  m.def(
      "series_step(Tensor x0, Tensor? x1, Tensor? x2, Tensor? x3, Tensor? x4, Tensor? x5, Tensor? x6, Tensor? x7, "
      "Tensor? state, str program) -> (Tensor, Tensor)");
}
STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl("series_step", COMMODITY_BOX(series_step)); }
