// Runs a series program on a GPU, stage by stage (device_program.h): an item runs the statements of a stage in one row
// and column, or walks through the rows of one column. All registers are kept in global memory for all rows,
// neighboring columns side by side; a wide panel is run in groups of columns, so that they fit.
#pragma once
#include "device_program.h"
#include "panel.h"

namespace commodity::series {

constexpr int kRowGroup = 8;  // rows of a scan that are loaded before the first is used, as the memory is slow
constexpr int64_t kScratch = int64_t(1) << 27;  // numbers of scratch memory, at most, if it holds one warp of columns

// Columns of all panels, counted through, and their registers.
struct Columns {
  const Instruction* instructions;
  int count;
  int64_t first, columns, steps;
  double *registers, *gradients, *states;

  COMMODITY_INLINE int64_t at(int i, int64_t t, int64_t c) const { return (i * steps + t) * columns + c; }
  // The last row instead of those beyond it.
  COMMODITY_INLINE int64_t row(int64_t t) const { return t < steps ? t : steps - 1; }
  COMMODITY_INLINE Column value(int i, int64_t c) const { return {registers + at(i, 0, c), columns}; }
  COMMODITY_INLINE Column gradient(int i, int64_t c) const { return {gradients + at(i, 0, c), columns}; }
  COMMODITY_INLINE double& state(int i, int k, int64_t c) const { return states[(2 * i + k) * columns + c]; }
};

// Where a column is in contiguous panels (batch, K, T, N).
template <typename scalar_t>
struct DevicePanels {
  scalar_t* data;
  int64_t channels, steps, assets;

  COMMODITY_INLINE scalar_t& operator()(int64_t column, int64_t channel, int64_t t) const {
    return data[((column / assets * channels + channel) * steps + t) * assets + column % assets];
  }
};

// Programs have any length, but the parameters of a kernel do not: they are copied in parts.
struct CopyInstructions {
  static constexpr int kPart = 32;
  Instruction part[kPart];
  Instruction* to;
  COMMODITY_INLINE void operator()(int64_t i) const { to[i] = part[i]; }
};

inline Tensor copy_instructions(const Tensor& like, const std::vector<Instruction>& instructions) {
  const Tensor memory = scratch(like, int64_t(instructions.size() * sizeof(Instruction) / sizeof(double)));
  for (size_t first = 0; first < instructions.size(); first += CopyInstructions::kPart) {
    const size_t count = std::min<size_t>(CopyInstructions::kPart, instructions.size() - first);
    CopyInstructions copy{};
    std::copy_n(instructions.begin() + first, count, copy.part);
    copy.to = data_ptr<Instruction>(memory) + first;
    launch(like, int64_t(count), copy);
  }
  return memory;
}

// Fills the registers of inputs and constants. One item per row and column.
template <typename scalar_t>
struct LoadRows {
  Columns columns;
  DevicePanels<const scalar_t> inputs[kMaxInputs];
  int panels;

  COMMODITY_INLINE void operator()(int64_t item) const {
    const int64_t t = item / columns.columns, c = item % columns.columns;
    double residue = 0;  // x - x is zero for a finite x, NaN otherwise
    for (int k = 0; k < panels; ++k) residue += input(k, t, c) - input(k, t, c);
    for (int i = 0; i < columns.count; ++i) {
      const Instruction& instruction = columns.instructions[i];
      if (instruction.opcode == kConstant) columns.value(i, c)[t] = instruction.attribute;
      if (instruction.opcode != kInput) continue;
      const int k = int(instruction.attribute);
      const double x = input(k, t, c), bad = k < panels ? residue : x - x;
      columns.value(i, c)[t] = bad == 0 ? x : kMissing;
    }
  }
  COMMODITY_INLINE double input(int k, int64_t t, int64_t c) const { return inputs[k](columns.first + c, 0, t); }
};

// Runs statements in one row of one column.
struct RunStatements {
  Columns columns;
  int first, last;

  COMMODITY_INLINE void operator()(int64_t t, int64_t c) const {
    for (int i = first; i <= last; ++i) run(columns.instructions[i], i, t, c);
  }

 private:
  COMMODITY_INLINE void run(const Instruction& instruction, int i, int64_t t, int64_t c) const {
    visit_operation(instruction.opcode, [&](auto operation) {
      using Operation = decltype(operation);
      double& y = columns.value(i, c)[t];
      const auto x = [&](int k) { return columns.value(instruction.operands[k], c); };
      if constexpr (kIsUnary<Operation>)
        y = Operation::value(x(0)[t]);
      else if constexpr (kIsBinary<Operation>)
        y = Operation::value(x(0)[t], x(1)[t]);
      else if constexpr (kIsScan<Operation>)
        y = scan<Operation>(instruction, i, t, c);
      else {
        Column operands[Operation::kOperands];
        for (int k = 0; k < Operation::kOperands; ++k) operands[k] = x(k);
        y = Operation::value(operands, t, instruction.attribute);
      }
    });
  }

  template <typename Operation>
  COMMODITY_INLINE double scan(const Instruction& instruction, int i, int64_t t, int64_t c) const {
    double x[Operation::kOperands], state[Operation::kStates], tape[Operation::kTapes + 1];
    for (int k = 0; k < Operation::kOperands; ++k) x[k] = columns.value(instruction.operands[k], c)[t];
    for (int k = 0; k < Operation::kStates; ++k) state[k] = t ? columns.state(i, k, c) : Operation::kStart;
    const double y = Operation::step(x, state, tape);
    for (int k = 0; k < Operation::kStates; ++k) columns.state(i, k, c) = state[k];
    for (int k = 0; k < Operation::kTapes; ++k) columns.value(instruction.tape + k, c)[t] = tape[k];
    return y;
  }
};

struct RunRows {
  RunStatements statements;
  COMMODITY_INLINE void operator()(int64_t item) const {
    statements(item / statements.columns.columns, item % statements.columns.columns);
  }
};

struct RunColumn {
  RunStatements statements;
  COMMODITY_INLINE void operator()(int64_t c) const {
    for (int64_t t = 0; t < statements.columns.steps; ++t) statements(t, c);
  }
};

// A scan without a loop around it.
template <typename Operation>
struct RunScan {
  Columns columns;
  int number;

  COMMODITY_INLINE void operator()(int64_t c) const {
    const Instruction instruction = columns.instructions[number];
    double state[Operation::kStates], tape[Operation::kTapes + 1];
    for (double& number : state) number = Operation::kStart;
    for (int64_t first = 0; first < columns.steps; first += kRowGroup) {
      double x[kRowGroup][Operation::kOperands];
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r)
#pragma unroll
        for (int k = 0; k < Operation::kOperands; ++k)
          x[r][k] = columns.value(instruction.operands[k], c)[columns.row(first + r)];
#pragma unroll
      for (int r = 0; r < kRowGroup; ++r) {
        const int64_t t = first + r;
        if (t >= columns.steps) return;
        columns.value(number, c)[t] = Operation::step(x[r], state, tape);
        for (int k = 0; k < Operation::kTapes; ++k) columns.value(instruction.tape + k, c)[t] = tape[k];
      }
    }
  }
};

inline void run_stages(const Tensor& like, const DeviceProgram& program, const Columns& columns) {
  for (const Stage& stage : Stages(program.instructions, false).list) {
    const RunStatements statements{columns, stage.first, stage.last};
    if (stage.parallel)
      launch(like, columns.steps * columns.columns, RunRows{statements});
    else if (stage.first < stage.last || program.instructions[stage.first].opcode == kFeedbackCode)
      launch(like, columns.columns, RunColumn{statements});
    else
      visit_operation(program.instructions[stage.first].opcode, [&](auto operation) {
        using Operation = decltype(operation);
        if constexpr (kIsScan<Operation>) launch(like, columns.columns, RunScan<Operation>{columns, stage.first});
      });
  }
}

// Whether a row is missing in one of the outputs.
struct OutputRows {
  Columns columns;
  const Instruction* outputs;  // their first operands
  int count;

  COMMODITY_INLINE double value(int k, int64_t t, int64_t c) const {
    return columns.value(outputs[k].operands[0], c)[t];
  }
  COMMODITY_INLINE bool missing_row(int64_t t, int64_t c) const {
    bool bad = false;
    for (int k = 0; k < count; ++k) bad |= missing(value(k, t, c));
    return bad;
  }
};

template <typename scalar_t>
LoadRows<scalar_t> load_rows(const Panel& panel, const DeviceProgram& program, const Columns& columns) {
  LoadRows<scalar_t> load{columns, {}, program.panels};
  for (size_t k = 0; k < panel.inputs.size(); ++k)
    load.inputs[k] = {panel.inputs[k].const_data_ptr<scalar_t>(), 1, panel.shape.steps, panel.shape.assets};
  return load;
}

// For each group of columns: fills the registers by a forward pass, then calls body(outputs).
template <typename scalar_t, typename Body>
void for_columns(const Panel& panel, const DeviceProgram& program, bool gradients, const Body& body) {
  const Tensor& x = panel.inputs[0];
  std::vector<Instruction> instructions = program.instructions;
  for (int output : program.outputs) instructions.push_back({kNothing, {output}});
  const Tensor code = copy_instructions(x, instructions);
  const int count = int(program.instructions.size());
  const int64_t total = panel.shape.batch * panel.shape.assets, steps = panel.shape.steps;
  const int64_t values = program.registers * steps, planes = values + (gradients ? count * steps : 0) + 2 * count;
  const int64_t group = std::min(total, std::max<int64_t>(kWarp, kScratch / planes / kWarp * kWarp));
  const Tensor memory = scratch(x, planes * group);
  for (int64_t first = 0; first < total; first += group) {
    Columns columns{data_ptr<Instruction>(code), count, first, std::min(group, total - first), steps};
    columns.registers = data_ptr<double>(memory);
    columns.states = columns.registers + values * columns.columns;
    columns.gradients = columns.states + 2 * count * columns.columns;
    launch(x, steps * columns.columns, load_rows<scalar_t>(panel, program, columns));
    run_stages(x, program, columns);
    body(OutputRows{columns, columns.instructions + count, int(program.outputs.size())});
  }
}

}  // namespace commodity::series
