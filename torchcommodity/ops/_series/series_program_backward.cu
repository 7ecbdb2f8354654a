// Gradients of the inputs of a series program, one item per column (device_columns.h): the forward pass once more, then
// all statements from the last to the first, from the last row to the first.
#include "device_columns.h"

using namespace commodity;
using namespace commodity::series;

namespace {

using Optional = const std::optional<Tensor>&;

// Gradients of the registers before the backward pass: those of the outputs, where none of them is missing.
template <typename scalar_t>
struct StartGradients {
  OutputRows outputs;
  DevicePanels<const scalar_t> grad;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const Columns& columns = outputs.columns;
    const int64_t t = item / columns.columns, c = item % columns.columns;
    for (int i = 0; i < columns.count; ++i) columns.gradient(i, c)[t] = 0;
    if (outputs.missing_row(t, c)) return;
    for (int k = 0; k < outputs.count; ++k) {
      const double gradient = grad(columns.first + c, k, t);
      if (gradient - gradient == 0) columns.gradient(outputs.outputs[k].operands[0], c)[t] += gradient;
    }
  }
};

struct AdjointColumn {
  Columns columns;

  COMMODITY_INLINE void operator()(int64_t c) const {
    for (int i = 0; i < columns.count; ++i) columns.state(i, 0, c) = 0;
    for (int64_t t = columns.steps; t-- > 0;)
      for (int i = columns.count; i-- > 0;) run(columns.instructions[i], i, t, c);
  }

  // Where the value is missing, so is its gradient; only scans have one from later rows then.
  COMMODITY_INLINE void run(const Instruction& instruction, int i, int64_t t, int64_t c) const {
    visit_operation(instruction.opcode, [&](auto operation) {
      using Operation = decltype(operation);
      const double y = columns.value(i, c)[t], dy = missing(y) ? 0 : columns.gradient(i, c)[t];
      if constexpr (kIsScan<Operation>)
        scan<Operation>(instruction, i, t, c, dy);
      else if (dy != 0)
        add<Operation>(instruction, t, c, y, dy);
    });
  }

  template <typename Operation>
  COMMODITY_INLINE void add(const Instruction& instruction, int64_t t, int64_t c, double y, double dy) const {
    const auto x = [&](int k) { return columns.value(instruction.operands[k], c); };
    const auto dx = [&](int k) { return columns.gradient(instruction.operands[k], c); };
    if constexpr (requires { Operation::d_a(0.0, 0.0); }) {
      dx(0)[t] += dy * Operation::d_a(x(0)[t], y);
    } else if constexpr (requires { Operation::d_b(0.0, 0.0, 0.0); }) {
      dx(0)[t] += dy * Operation::d_a(x(0)[t], x(1)[t], y);
      dx(1)[t] += dy * Operation::d_b(x(0)[t], x(1)[t], y);
    } else if constexpr (requires(Column* none) { Operation::adjoint(none, 0, 0.0, 0.0, none); }) {
      Column operands[Operation::kOperands], gradients[Operation::kOperands];
      for (int k = 0; k < Operation::kOperands; ++k) operands[k] = x(k), gradients[k] = dx(k);
      Operation::adjoint(operands, t, instruction.attribute, dy, gradients);
    }
  }

  template <typename Operation>
  COMMODITY_INLINE void scan(const Instruction& instruction, int i, int64_t t, int64_t c, double dy) const {
    if constexpr (requires { Operation::kCarries; }) {
      double x[Operation::kOperands], dx[Operation::kOperands], tape[Operation::kTapes + 1];
      for (int k = 0; k < Operation::kOperands; ++k) x[k] = columns.value(instruction.operands[k], c)[t];
      for (int k = 0; k < Operation::kTapes; ++k) tape[k] = columns.value(instruction.tape + k, c)[t];
      static_assert(Operation::kCarries == 1);
      Operation::adjoint(x, dy, tape, &columns.state(i, 0, c), dx);
      for (int k = 0; k < Operation::kOperands; ++k) columns.gradient(instruction.operands[k], c)[t] += dx[k];
    }
  }
};

// The gradients of the wanted inputs, zero where they are missing.
template <typename scalar_t>
struct StoreGradients {
  Columns columns;
  int wanted[kMaxInputs];
  DevicePanels<scalar_t> dx;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t t = item / columns.columns, c = item % columns.columns;
    for (int m = 0; m < dx.channels; ++m) {
      double sum = 0;
      for (int i = 0; i < columns.count; ++i) {
        const bool selected =
            columns.instructions[i].opcode == kInput && columns.instructions[i].attribute == wanted[m];
        if (selected && !missing(columns.value(i, c)[t])) sum += columns.gradient(i, c)[t];
      }
      dx(columns.first + c, m, t) = static_cast<scalar_t>(missing(sum) ? 0 : sum);
    }
  }
};

Tensor series_program_backward(const Tensor& grad_, const Tensor& x0, Optional x1, Optional x2, Optional x3,
                               Optional x4, Optional x5, Optional x6, Optional x7, std::string text,
                               std::vector<int64_t> wanted) {
  STD_TORCH_CHECK(x0.dim() >= 2, "series_program_backward: panels must be (..., T, N)");
  const DeviceProgram program(text);
  const Panel panel("series_program_backward", program.inputs, x0, {&x1, &x2, &x3, &x4, &x5, &x6, &x7});
  const Tensor grad = contiguous(grad_);
  const int64_t outputs = int64_t(program.outputs.size()), count = int64_t(wanted.size());
  STD_TORCH_CHECK(program.result == Result::kFloat, "series_program_backward: an integer output has no gradient");
  STD_TORCH_CHECK(count <= kMaxInputs, "series_program_backward: there are up to 8 inputs");
  STD_TORCH_CHECK(grad.numel() == outputs * panel.inputs[0].numel() && grad.scalar_type() == x0.scalar_type(),
                  "series_program_backward: grad must have the shape and dtype of the output");
  Tensor dx = new_empty(x0, panel.result_shape(wanted.size()));
  const Panels& shape = panel.shape;
  dispatch("series_program_backward", x0, [&]<typename scalar_t>() {
    StoreGradients<scalar_t> store{{}, {}, {data_ptr<scalar_t>(dx), count, shape.steps, shape.assets}};
    std::copy(wanted.begin(), wanted.end(), store.wanted);
    for_columns<scalar_t>(panel, program, true, [&](const OutputRows& rows) {
      const int64_t items = shape.steps * rows.columns.columns;
      launch(dx, items,
             StartGradients<scalar_t>{rows, {grad.const_data_ptr<scalar_t>(), outputs, shape.steps, shape.assets}});
      launch(dx, rows.columns.columns, AdjointColumn{rows.columns});
      store.columns = rows.columns;
      launch(dx, items, store);
    });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(series_program_backward)
