// A series program as a flat list of instructions for CUDA. Instruction i computes register i.
#pragma once
#include <device.h>

#include "lookbacks.h"
#include "scans.h"
#include "text.h"

namespace commodity::series {

constexpr int kMaxOperands = 5;

// Of every statement that computes: its name, its operation, and how few and how many attributes it takes.
#define SERIES_OPERATIONS(OPERATION)                     \
  OPERATION(add, Add, 0, 0)                              \
  OPERATION(subtract, Subtract, 0, 0)                    \
  OPERATION(multiply, Multiply, 0, 0)                    \
  OPERATION(divide, Divide, 0, 1)                        \
  OPERATION(negate, Negate, 0, 0)                        \
  OPERATION(absolute, Absolute, 0, 0)                    \
  OPERATION(sqrt, SquareRoot, 0, 0)                      \
  OPERATION(exp, Exp, 0, 0)                              \
  OPERATION(log, Log, 0, 0)                              \
  OPERATION(atan, Atan, 0, 0)                            \
  OPERATION(sin, Sin, 0, 0)                              \
  OPERATION(cos, Cos, 0, 0)                              \
  OPERATION(floor, Floor, 0, 0)                          \
  OPERATION(ceil, Ceil, 0, 0)                            \
  OPERATION(sign, Sign, 0, 0)                            \
  OPERATION(maximum, Maximum, 0, 0)                      \
  OPERATION(minimum, Minimum, 0, 0)                      \
  OPERATION(less, Less, 0, 0)                            \
  OPERATION(less_equal, LessEqual, 0, 0)                 \
  OPERATION(equal, Equal, 0, 0)                          \
  OPERATION(where, Where, 0, 0)                          \
  OPERATION(fill, Fill, 0, 0)                            \
  OPERATION(valid, Valid, 0, 0)                          \
  OPERATION(restrict, Restrict, 0, 0)                    \
  OPERATION(row, Row, 0, 0)                              \
  OPERATION(lag, Lag, 1, 1)                              \
  OPERATION(forward_fill, ForwardFill, 0, 0)             \
  OPERATION(previous, Previous, 0, 0)                    \
  OPERATION(change, Change, 0, 0)                        \
  OPERATION(true_range, TrueRange, 0, 0)                 \
  OPERATION(count, CountValues, 0, 0)                    \
  OPERATION(skip, Skip, 0, 0)                            \
  OPERATION(cumsum, CumulativeSum, 0, 0)                 \
  OPERATION(exponential, Exponential, 0, 0)              \
  OPERATION(recurrence, Recurrence, 0, 0)                \
  OPERATION(smooth, Smooth, 0, 0)                        \
  OPERATION(feedback, Feedback, 1, 1)                    \
  OPERATION(window_sum, WindowSum, 1, 1)                 \
  OPERATION(window_mean, WindowMean, 1, 1)               \
  OPERATION(weighted_sum, WeightedSum, 1, 1)             \
  OPERATION(window_products, WindowProducts, 1, 1)       \
  OPERATION(highest, Highest, 1, 1)                      \
  OPERATION(lowest, Lowest, 1, 1)                        \
  OPERATION(since_highest, SinceHighest, 1, 1)           \
  OPERATION(since_lowest, SinceLowest, 1, 1)             \
  OPERATION(absolute_deviation, AbsoluteDeviation, 1, 1) \
  OPERATION(rank, Rank, 1, 1)

#define SERIES_OPCODE(name, Operation, min, max) k##Operation##Code,
enum Opcode { kNothing, kInput, kConstant, SERIES_OPERATIONS(SERIES_OPCODE) };
#undef SERIES_OPCODE

struct Instruction {
  int opcode = kNothing;
  int operands[kMaxOperands] = {};
  int tape = 0;  // the first register of what the adjoint needs besides the operands
  double attribute = kMissing;
};

// Calls visit(operation) with the struct of an instruction that computes.
template <typename Visit>
COMMODITY_INLINE void visit_operation(int opcode, const Visit& visit) {
#define SERIES_CASE(name, Operation, min, max) \
  case k##Operation##Code:                     \
    return visit(Operation{});
  switch (opcode) { SERIES_OPERATIONS(SERIES_CASE) }
#undef SERIES_CASE
}

// Kinds of operations: functions of numbers, scans (scans.h), lookbacks (lookbacks.h).
template <typename Operation>
constexpr bool kIsUnary = requires { Operation::value(0.0); };
template <typename Operation>
constexpr bool kIsBinary = requires { Operation::value(0.0, 0.0); };
template <typename Operation>
constexpr bool kIsScan = requires { Operation::kStates; };
template <typename Operation>
constexpr bool kGathers = requires(double (*dy)(int64_t)) { Operation::gather(dy, 0, 0, 0.0); };
template <typename Operation>
constexpr bool kIsSameRow = kIsUnary<Operation> || kIsBinary<Operation> || requires { Operation::kSameRow; };

struct Operator {
  const char* name;
  int opcode, operands, min_attributes, max_attributes, tapes;
};

template <typename Operation>
constexpr Operator describe(const char* name, int opcode, int min_attributes, int max_attributes) {
  Operator described{name, opcode, 0, min_attributes, max_attributes, 0};
  if constexpr (kIsUnary<Operation>)
    described.operands = 1;
  else if constexpr (kIsBinary<Operation>)
    described.operands = 2;
  else
    described.operands = Operation::kOperands;
  if constexpr (kIsScan<Operation>) described.tapes = Operation::kTapes;
  return described;
}

inline const Operator* find_operator(const std::string& name) {
#define SERIES_OPERATOR(name, Operation, min, max) describe<Operation>(#name, k##Operation##Code, min, max),
  static constexpr Operator operators[] = {SERIES_OPERATIONS(SERIES_OPERATOR)};
#undef SERIES_OPERATOR
  for (const Operator& candidate : operators)
    if (name == candidate.name) return &candidate;
  return nullptr;
}

struct DeviceProgram {
  int panels = 0, inputs = 0, registers = 0;  // those of the statements, then the tapes
  std::vector<Instruction> instructions;
  std::vector<int> outputs;
  Result result = Result::kFloat;

  explicit DeviceProgram(const std::string& text) {
    const std::vector<Words> statements = read_statements(text);
    registers = int(statements.size());
    for (const Words& statement : statements) add(statement);
  }

 private:
  void add(const Words& statement) {
    Instruction instruction;
    if (!statement.attributes.empty()) instruction.attribute = statement.attributes[0];
    if (statement.name == "return")
      add_return(statement);
    else if (statement.name == "panels")
      inputs = panels = int(instruction.attribute);
    else if (statement.name == "input")
      instruction.opcode = kInput, inputs = std::max(inputs, int(instruction.attribute) + 1);
    else if (statement.name == "constant")
      instruction.opcode = kConstant;
    else if (statement.name == "assign")
      assign(statement);
    else
      add_operation(statement, instruction);
    instructions.push_back(instruction);
  }

  void add_return(const Words& statement) {
    for (const Instruction& instruction : instructions)
      statement.check(instruction.opcode != kFeedbackCode || instruction.operands[0], "a feedback has no assign");
    outputs = statement.operands, result = parse_result(statement);
  }

  void add_operation(const Words& statement, Instruction& instruction) {
    const Operator* operation = find_operator(statement.name);
    statement.check(operation, "there is no statement of this name");
    const int attributes = int(statement.attributes.size());
    const bool is_feedback = operation->opcode == kFeedbackCode;
    statement.check(int(statement.operands.size()) == (is_feedback ? 0 : operation->operands),
                    "wrong number of operands");
    statement.check(attributes >= operation->min_attributes && attributes <= operation->max_attributes,
                    "wrong number of attributes");
    if (operation->min_attributes && !is_feedback)
      statement.check(instruction.attribute >= (operation->opcode == kLagCode ? 0 : 1) && instruction.attribute < 1e9,
                      "the number of rows is out of range");
    instruction.opcode = operation->opcode;
    instruction.tape = std::exchange(registers, registers + operation->tapes);
    std::copy(statement.operands.begin(), statement.operands.end(), instruction.operands);
  }

  // The value goes to the feedback of the next row, which is set now.
  void assign(const Words& statement) {
    statement.check(statement.operands.size() == 2 && statement.attributes.empty(), "expected two operands");
    Instruction& feedback = instructions[statement.operands[0]];
    statement.check(feedback.opcode == kFeedbackCode && feedback.operands[0] == 0,
                    "the first operand must be a feedback that has no assign yet");
    feedback.operands[0] = statement.operands[1], feedback.operands[1] = statement.operands[0];
  }
};

// Statements [first, last] of one launch: `parallel`, all rows at once, or else one row after another.
struct Stage {
  int first, last;
  bool parallel;
};

// Splits a program into stages. A scan needs the row before, and so does a loop, from its feedback to what is assigned
// to it. Other statements run in all rows at once, of which a lookback reads rows of earlier stages only. Its adjoint
// is a stage of its own: it adds to other rows, or gathers from them.
class Stages {
 public:
  std::vector<Stage> list;

  Stages(const std::vector<Instruction>& instructions, bool adjoint) {
    for (int i = 0; i < int(instructions.size()); ++i) {
      const Instruction& instruction = instructions[i];
      visit_operation(instruction.opcode, [&](auto operation) {
        using Operation = decltype(operation);
        if constexpr (std::is_same_v<Operation, Feedback>)
          i = add({i, loop_end(instructions, i), false});
        else if constexpr (kIsScan<Operation>)
          add({i, i, false});
        else if constexpr (kIsSameRow<Operation>)
          extend(i);
        else if (adjoint)
          add({i, i, kGathers<Operation>});
        else
          extend(i, reads_stage(instruction, Operation::kOperands));
      });
    }
  }

 private:
  bool open_ = false;  // whether the last stage takes further statements

  int add(const Stage& stage) {
    list.push_back(stage), open_ = false;
    return stage.last;
  }
  void extend(int i, bool anew = false) {
    if (anew || !open_) add({i, i, true}), open_ = true;
    list.back().last = i;
  }
  bool reads_stage(const Instruction& instruction, int operands) const {
    bool reads = false;
    for (int k = 0; open_ && k < operands; ++k) reads |= instruction.operands[k] >= list.back().first;
    return reads;
  }
  static int loop_end(const std::vector<Instruction>& instructions, int feedback) {
    int last = std::max(feedback, instructions[feedback].operands[0]);
    for (int i = feedback + 1; i <= last; ++i)
      if (instructions[i].opcode == kFeedbackCode) last = std::max(last, instructions[i].operands[0]);
    return last;
  }
};

}  // namespace commodity::series
