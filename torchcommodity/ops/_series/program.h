// A series program: statements in static single assignment, read from text, and the plan of its memory.
#pragma once
#include <memory>
#include <string>

#include "statement.h"
#include "text.h"

namespace commodity::series {

enum class Kind { kPanels, kInput, kConstant, kCompute, kAssign, kReturn };

struct Statement {
  Kind kind = Kind::kCompute;
  const Primitive* primitive = nullptr;
  std::vector<int> operands;  // numbers of statements
  std::vector<double> attributes;
  int64_t state = 0, traced_state = 0, adjoint_state = 0, tape = 0;  // first plane of each
  int64_t states = 0, traced_states = 0;
  int buffer = -1;      // where a forward pass keeps the value; -1: it has none, or memory of its own
  int64_t history = 0;  // rows of the value before a tile that a forward pass keeps for short lags
  int64_t delay = 0;    // of a short lag: a forward pass reads its operand so many rows before, and copies nothing
};

// The statements [first, last] run row by row: a value of one row depends on a later statement of the row before.
struct Loop {
  int first, last;
};

// Plane 0 of the state is the number of rows seen.
struct Program {
  int panels = 0, inputs = 0, buffers = 0;
  Result result = Result::kFloat;
  std::vector<Statement> statements;
  std::vector<int> outputs;
  std::vector<Loop> loops;
  int64_t states = 1, traced_states = 1, adjoint_states = 0, tapes = 0;
};

// Parses a program, once per text.
std::shared_ptr<const Program> parse(const std::string& text);

}  // namespace commodity::series
