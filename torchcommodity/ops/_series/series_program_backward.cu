// Gradients of the inputs of a series program (device_columns.h): the forward pass once more, then the stages of the
// adjoint from the last to the first, and in each the statements, and the rows, from the last to the first.
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

// The adjoints of statements in one row of one column.
struct AdjointStatements {
  Columns columns;
  int first, last;

  COMMODITY_INLINE void operator()(int64_t t, int64_t c) const {
    for (int i = last; i >= first; --i) run(columns.instructions[i], i, t, c);
  }

 private:
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
      double carry = t + 1 < columns.steps ? columns.state(i, 0, c) : 0;
      Operation::adjoint(x, dy, tape, &carry, dx);
      columns.state(i, 0, c) = carry;
      for (int k = 0; k < Operation::kOperands; ++k) columns.gradient(instruction.operands[k], c)[t] += dx[k];
    }
  }
};

struct AdjointRows {
  AdjointStatements statements;
  COMMODITY_INLINE void operator()(int64_t item) const {
    statements(item / statements.columns.columns, item % statements.columns.columns);
  }
};

struct AdjointColumn {
  AdjointStatements statements;
  COMMODITY_INLINE void operator()(int64_t c) const {
    for (int64_t t = statements.columns.steps; t-- > 0;) statements(t, c);
  }
};

// A scan without a loop around it.
template <typename Operation>
struct AdjointScan {
  Columns columns;
  int number;

  COMMODITY_INLINE void operator()(int64_t c) const {
    const Instruction instruction = columns.instructions[number];
    double carry = 0;
    for (int64_t first = 0; first < columns.steps; first += kRowGroup) {
      double x[kRowGroup][Operation::kOperands], tape[kRowGroup][Operation::kTapes + 1], dy[kRowGroup];
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r) {
        const int64_t t = row(first + r);
        dy[r] = missing(columns.value(number, c)[t]) ? 0 : columns.gradient(number, c)[t];
#pragma unroll
        for (int k = 0; k < Operation::kOperands; ++k) x[r][k] = columns.value(instruction.operands[k], c)[t];
#pragma unroll
        for (int k = 0; k < Operation::kTapes; ++k) tape[r][k] = columns.value(instruction.tape + k, c)[t];
      }
      double dx[kRowGroup][Operation::kOperands];
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r) Operation::adjoint(x[r], dy[r], tape[r], &carry, dx[r]);
#pragma unroll
      for (int k = 0; k < Operation::kOperands; ++k) add(instruction.operands[k], c, first, k, dx);
    }
  }

 private:
  // Rows are numbered backward.
  COMMODITY_INLINE int64_t row(int64_t back) const { return columns.steps - 1 - columns.row(back); }

  COMMODITY_INLINE void add(int operand, int64_t c, int64_t first, int k,
                            const double (&dx)[kRowGroup][Operation::kOperands]) const {
    if (columns.instructions[operand].opcode == kConstant) return;
    double sum[kRowGroup];
#pragma unroll
    for (int r = 0; r < kRowGroup; ++r) sum[r] = columns.gradient(operand, c)[row(first + r)] + dx[r][k];
#pragma unroll
    for (int r = 0; r < kRowGroup; ++r)
      if (first + r < columns.steps) columns.gradient(operand, c)[row(first + r)] = sum[r];
  }
};

// A lookback without a loop around it.
template <typename Operation>
struct AdjointGather {
  Columns columns;
  int number;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t t = item / columns.columns, c = item % columns.columns;
    const Instruction& instruction = columns.instructions[number];
    const Column y = columns.value(number, c), gradient = columns.gradient(number, c);
    const auto dy = [&](int64_t row) { return missing(y[row]) ? 0 : gradient[row]; };
    columns.gradient(instruction.operands[0], c)[t] += Operation::gather(dy, t, columns.steps, instruction.attribute);
  }
};

// Whether the statement has a launch of its own.
bool run_adjoint_statement(const Tensor& like, int opcode, const Columns& columns, int number) {
  bool is_own = false;
  visit_operation(opcode, [&](auto operation) {
    using Operation = decltype(operation);
    is_own = kIsScan<Operation> || kGathers<Operation>;
    if constexpr (kGathers<Operation>) {
      launch(like, columns.steps * columns.columns, AdjointGather<Operation>{columns, number});
    } else if constexpr (requires { Operation::kCarries; }) {
      static_assert(Operation::kCarries == 1);
      launch(like, columns.columns, AdjointScan<Operation>{columns, number});
    }
  });
  return is_own;
}

void run_adjoint_stages(const Tensor& like, const DeviceProgram& program, const Columns& columns) {
  const std::vector<Stage> stages = Stages(program.instructions, true).list;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const AdjointStatements statements{columns, stage->first, stage->last};
    const int opcode = program.instructions[stage->first].opcode;
    if (stage->first == stage->last && run_adjoint_statement(like, opcode, columns, stage->first)) continue;
    if (stage->parallel)
      launch(like, columns.steps * columns.columns, AdjointRows{statements});
    else
      launch(like, columns.columns, AdjointColumn{statements});
  }
}

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
      run_adjoint_stages(dx, program, rows.columns);
      store.columns = rows.columns;
      launch(dx, items, store);
    });
  });
  return dx;
}

}  // namespace

COMMODITY_CUDA(series_program_backward)
