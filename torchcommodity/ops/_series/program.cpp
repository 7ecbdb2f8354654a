// What the statements of a program may be, and where their values and states are kept.
#include "program.h"

#include <mutex>
#include <unordered_map>

#include "primitives.h"

namespace commodity::series {

const Primitive* find_primitive(std::string_view name) {
  for (const auto& primitives : {arithmetic_primitives(), function_primitives(), mask_primitives(), delay_primitives(),
                                 recursive_primitives(), window_primitives(), extreme_primitives(), order_primitives()})
    for (const Primitive& primitive : primitives)
      if (primitive.name == name) return &primitive;
  return nullptr;
}

namespace {

struct Parser {
  Program program;
  std::vector<int> open;  // feedback statements that wait for their assignment
  int first_of_loop = -1;

  int number() const { return int(program.statements.size()); }

  void add(const Words& words) {
    Statement statement;
    statement.operands = words.operands, statement.attributes = words.attributes;
    words.name == "return" ? add_return(statement, words) : add_value(statement, words);
    program.statements.push_back(std::move(statement));
  }

  void add_return(Statement& statement, const Words& words) {
    statement.kind = Kind::kReturn;
    words.check(open.empty(), "a feedback has no assign");
    program.result = parse_result(words), program.outputs = statement.operands;
  }

  void add_value(Statement& statement, const Words& words) {
    const std::string& name = words.name;
    if (name == "panels") {
      statement.kind = Kind::kPanels;
      program.inputs = program.panels = int(statement.attributes[0]);
    } else if (name == "input") {
      statement.kind = Kind::kInput;
      program.inputs = std::max(program.inputs, int(statement.attributes[0]) + 1);
    } else if (name == "constant") {
      statement.kind = Kind::kConstant;
    } else {
      add_compute(statement, words);
    }
  }

  void add_compute(Statement& statement, const Words& words) {
    const std::string& name = words.name;
    const Primitive* primitive = statement.primitive = find_primitive(name);
    words.check(primitive, "there is no statement of this name");
    const int operands = int(statement.operands.size()), attributes = int(statement.attributes.size());
    words.check(operands == primitive->operands, "wrong number of operands");
    words.check(attributes >= primitive->min_attributes && attributes <= primitive->max_attributes,
                "wrong number of attributes");
    if (primitive->states != none && name != "feedback" && attributes)
      words.check(statement.attributes[0] >= (name == "lag" ? 0 : 1) && statement.attributes[0] < 1e9,
                  "the number of rows is out of range");
    allocate(statement);
    if (name == "feedback") open_loop();
    if (name == "assign") close_loop(statement, words);
  }

  void allocate(Statement& statement) {
    const Primitive& primitive = *statement.primitive;
    const double* attributes = statement.attributes.data();
    statement.states = primitive.states(attributes);
    statement.traced_states = primitive.traced_states ? primitive.traced_states(attributes) : statement.states;
    const auto take = [](int64_t& total, int64_t planes) { return (total += planes) - planes; };
    statement.state = take(program.states, statement.states);
    statement.traced_state = take(program.traced_states, statement.traced_states);
    statement.adjoint_state = take(program.adjoint_states, primitive.adjoint_states(attributes));
    statement.tape = take(program.tapes, primitive.tapes);
  }

  void open_loop() {
    if (open.empty()) first_of_loop = number();
    open.push_back(number());
  }

  // The assignment writes to the state of its feedback.
  void close_loop(Statement& statement, const Words& words) {
    const auto feedback = std::find(open.begin(), open.end(), statement.operands[0]);
    words.check(feedback != open.end(), "the first operand must be a feedback that has no assign yet");
    const Statement& source = program.statements[*feedback];
    statement.kind = Kind::kAssign;
    statement.state = source.state, statement.traced_state = source.traced_state;
    statement.adjoint_state = source.adjoint_state;
    open.erase(feedback);
    if (open.empty()) program.loops.push_back({first_of_loop, number()});
  }
};

// Rows of history, at most: to move them costs less than a lag's copies of a tile to its ring and from there.
constexpr double kMaxHistory = 8;

void find_short_lags(std::vector<Statement>& statements) {
  for (Statement& statement : statements) {
    if (!statement.primitive || statement.primitive->name != "lag" || statement.attributes[0] > kMaxHistory) continue;
    Statement& operand = statements[statement.operands[0]];
    if (operand.kind == Kind::kConstant || operand.delay) continue;
    statement.delay = int64_t(statement.attributes[0]);
    operand.history = std::max(operand.history, statement.delay);
  }
}

// Buffers of values that are no longer needed are used again. A value from outside a loop is needed until its end.
void assign_buffers(Program& program) {
  std::vector<Statement>& statements = program.statements;
  const int count = int(statements.size());
  std::vector<int> last(count, -1), free;
  for (int i = 0; i < count; ++i)
    for (int operand : statements[i].operands) last[operand] = i;
  for (const Loop& loop : program.loops)
    for (int i = 0; i < loop.first; ++i)
      if (last[i] >= loop.first && last[i] < loop.last) last[i] = loop.last;
  const auto release = [&](int i) {
    for (int k = 0; k <= i; ++k)
      if (statements[k].buffer >= 0 && statements[k].kind != Kind::kConstant && last[k] == i)
        free.push_back(statements[k].buffer), last[k] = count;
  };
  for (int i = 0; i < count; ++i) {
    const bool elementwise = statements[i].primitive && statements[i].primitive->elementwise;
    const Kind kind = statements[i].kind;
    const bool has_buffer = (kind == Kind::kInput || kind == Kind::kConstant || kind == Kind::kCompute) &&
                            !statements[i].history && !statements[i].delay;
    if (elementwise) release(i);
    if (has_buffer) {
      if (free.empty() || !statements[i].primitive) {
        statements[i].buffer = program.buffers++;
      } else {
        statements[i].buffer = free.back();
        free.pop_back();
      }
      if (last[i] < 0) last[i] = i;  // not used: free at once
    }
    release(i);
  }
}

Program parse_text(const std::string& text) {
  Parser parser;
  for (const Words& statement : read_statements(text)) parser.add(statement);
  find_short_lags(parser.program.statements);
  assign_buffers(parser.program);
  return std::move(parser.program);
}

}  // namespace

std::shared_ptr<const Program> parse(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const Program>> programs;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Program>& program = programs[text];
  if (!program) program = std::make_shared<const Program>(parse_text(text));
  return program;
}

}  // namespace commodity::series
