// A series program over panels (..., T, N), from the first row to the last.
#include "block_runner.h"

using namespace commodity;
using namespace commodity::series;

namespace {

using Optional = const std::optional<Tensor>&;

// Columns that are run together: memory is fastest by whole rows, and a long state is to stay in the L2 cache.
constexpr int64_t kMinColumns = 2 * kBlock, kMaxColumns = 16 * kBlock;
constexpr int64_t kStateSize = 1 << 17;

Tensor series_program(const Tensor& x0, Optional x1, Optional x2, Optional x3, Optional x4, Optional x5, Optional x6,
                      Optional x7, std::string text) {
  STD_TORCH_CHECK(x0.dim() >= 2, "series_program: panels must be (..., T, N)");
  const std::shared_ptr<const Program> program = parse(text);
  const Panel panel("series_program", program->inputs, x0, {&x1, &x2, &x3, &x4, &x5, &x6, &x7});
  Tensor y = new_result(*program, panel);
  const int64_t outputs = int64_t(program->outputs.size());
  dispatch_types(*program, x0, [&](auto scalar, auto result, double absent) {
    auto* data = y.mutable_data_ptr<decltype(result)>();
    const int64_t columns = std::clamp(kStateSize / program->states, kMinColumns, kMaxColumns);
    for_each_block(
        panel.shape,
        [&](int64_t batch, int64_t first, int64_t last) {
          const int64_t width = padded(last - first);
          TileRunner runner(*program, width, tile_rows(width, panel.shape.steps), false, false);
          runner.start();
          run_rows<decltype(scalar)>(*program, panel, batch, first, last, runner, 0,
                                     data + batch * outputs * panel.shape.size() + first, absent);
        },
        columns);
  });
  return y;
}

}  // namespace

COMMODITY_OPERATOR(series_program,
                   "(Tensor x0, Tensor? x1, Tensor? x2, Tensor? x3, Tensor? x4, Tensor? x5, Tensor? x6, Tensor? x7, "
                   "str program) -> Tensor")
