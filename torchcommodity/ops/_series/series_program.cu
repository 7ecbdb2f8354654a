// A series program over panels (..., T, N), stage by stage (device_columns.h).
#include "device_columns.h"

using namespace commodity;
using namespace commodity::series;

namespace {

using Optional = const std::optional<Tensor>&;

template <typename result_t>
struct StoreRows {
  OutputRows outputs;
  DevicePanels<result_t> y;
  double absent;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t t = item / outputs.columns.columns, c = item % outputs.columns.columns;
    const bool bad = outputs.missing_row(t, c);
    for (int k = 0; k < outputs.count; ++k)
      y(outputs.columns.first + c, k, t) = static_cast<result_t>(bad ? absent : outputs.value(k, t, c));
  }
};

template <typename scalar_t, typename result_t>
Tensor run(const Panel& panel, const DeviceProgram& program, torch::headeronly::ScalarType dtype, double absent) {
  const int64_t outputs = int64_t(program.outputs.size());
  Tensor y = new_empty(panel.inputs[0], panel.result_shape(program.outputs.size()), dtype);
  const DevicePanels<result_t> panels{data_ptr<result_t>(y), outputs, panel.shape.steps, panel.shape.assets};
  for_columns<scalar_t>(panel, program, false, [&](const OutputRows& rows) {
    launch(y, rows.columns.steps * rows.columns.columns, StoreRows<result_t>{rows, panels, absent});
  });
  return y;
}

Tensor series_program(const Tensor& x0, Optional x1, Optional x2, Optional x3, Optional x4, Optional x5, Optional x6,
                      Optional x7, std::string text) {
  using torch::headeronly::ScalarType;
  STD_TORCH_CHECK(x0.dim() >= 2, "series_program: panels must be (..., T, N)");
  const DeviceProgram program(text);
  const Panel panel("series_program", program.inputs, x0, {&x1, &x2, &x3, &x4, &x5, &x6, &x7});
  Tensor y = panel.inputs[0];
  dispatch("series_program", x0, [&]<typename scalar_t>() {
    switch (program.result) {
      case Result::kFloat:
        y = run<scalar_t, scalar_t>(panel, program, x0.scalar_type(), kMissing);
        break;
      case Result::kInt8:
        y = run<scalar_t, int8_t>(panel, program, ScalarType::Char, 0);
        break;
      case Result::kInt16:
        y = run<scalar_t, int16_t>(panel, program, ScalarType::Short, 0);
        break;
      case Result::kInt64:
        y = run<scalar_t, int64_t>(panel, program, ScalarType::Long, -1);
    }
  });
  return y;
}

}  // namespace

COMMODITY_CUDA(series_program)
