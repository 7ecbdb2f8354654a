// The adjoints of the statements of a program, on tiles from the last row to the first.
#pragma once
#include "tile_runner.h"

namespace commodity::series {

inline size_t count_feedbacks(const Program& program) {
  const auto is_feedback = [](const Statement& s) { return s.primitive && s.primitive->name == "feedback"; };
  return std::count_if(program.statements.begin(), program.statements.end(), is_feedback);
}

// The statements through which an output depends on a wanted input: those whose gradient is computed.
inline std::vector<bool> find_active(const Program& program, const std::vector<int64_t>& wanted) {
  const std::vector<Statement>& statements = program.statements;
  std::vector<bool> depends(statements.size()), reached(statements.size());
  for (int output : program.outputs) reached[output] = true;
  for (size_t pass = 0; pass < 2 + count_feedbacks(program); ++pass) {  // again: one that is fed back may feed the next
    for (size_t i = 0; i < statements.size(); ++i) {
      const Statement& statement = statements[i];
      if (statement.kind == Kind::kInput)
        depends[i] = std::find(wanted.begin(), wanted.end(), int64_t(statement.attributes[0])) != wanted.end();
      if (!statement.primitive || !statement.primitive->adjoint) continue;
      for (int operand : statement.operands) depends[i] = depends[i] || depends[operand];
      if (statement.kind == Kind::kAssign && depends[statement.operands[1]]) depends[statement.operands[0]] = true;
    }
    for (size_t i = statements.size(); i-- > 0;) {
      const Statement& statement = statements[i];
      if (!statement.primitive || !statement.primitive->adjoint) continue;
      if (statement.kind == Kind::kAssign) reached[i] = reached[statement.operands[0]];
      if (reached[i])
        for (int operand : statement.operands) reached[operand] = true;
    }
  }
  for (size_t i = 0; i < depends.size(); ++i) depends[i] = depends[i] && reached[i];
  return depends;
}

class AdjointRunner {
 public:
  // Gradients of the registers of `forward`, which keeps them. Each has one tile of `rows` rows.
  AdjointRunner(const Program& program, const std::vector<bool>& active, TileRunner& forward, const double* start,
                int64_t width, int64_t rows, int64_t steps)
      : program_(program),
        active_(active),
        width_(width),
        tile_(rows * width),
        state_(program.adjoint_states * width),
        waste_(width),
        repeated_(kOperands * tile_) {
    const std::vector<Statement>& statements = program.statements;
    first_.resize(statements.size(), -1);
    int64_t size = 0;
    for (size_t i = 0; i < statements.size(); ++i)
      if (active[i] && statements[i].kind != Kind::kReturn) first_[i] = std::exchange(size, size + tile_);
    gradients_.resize(size);
    for (size_t i = 0; i < statements.size(); ++i) calls_.push_back(call(int(i), forward, start, steps));
  }

  // The gradient of a register, from the first row of the current tile on; nullptr if it is not computed.
  double* gradient(int statement) { return first_[statement] < 0 ? nullptr : gradients_.data() + first_[statement]; }

  void clear() { std::fill(gradients_.begin(), gradients_.end(), 0.0); }

  // Rows end - 1, ..., begin of the registers, whose row 0 is row `time` of the series.
  void run(int64_t time, int64_t begin, int64_t end) {
    int loop = int(program_.loops.size()) - 1;
    for (int i = int(calls_.size()) - 1; i >= 0; --i) {
      if (loop >= 0 && program_.loops[loop].last == i) {
        for (int64_t r = end - 1; r >= begin; --r)
          for (int k = i; k >= program_.loops[loop].first; --k) run_statement(k, time, r, r + 1, begin);
        i = program_.loops[loop--].first;
      } else {
        run_statement(i, time, begin, end, begin);
      }
    }
  }

 private:
  const Program& program_;
  const std::vector<bool>& active_;
  const int64_t width_, tile_;
  AlignedVector<double> state_, waste_, repeated_, gradients_;
  std::vector<int64_t> first_;
  std::vector<Adjoint> calls_;

  Adjoint call(int i, TileRunner& forward, const double* start, int64_t steps) {
    const Statement& statement = program_.statements[i];
    Adjoint call{};
    call.y = forward.value(i), call.width = width_, call.steps = steps, call.waste = waste_.data();
    for (size_t k = 0; k < statement.operands.size() && k < kOperands; ++k)
      call.x[k] = forward.value(statement.operands[k]);
    call.tape = forward.tape(statement);
    call.start = start + statement.traced_state * width_;
    call.attributes = statement.attributes.data();
    call.attribute_count = int(statement.attributes.size());
    call.state = state_.data() + statement.adjoint_state * width_;
    call.dy = gradient(i);
    for (size_t k = 0; k < statement.operands.size() && k < kOperands; ++k) {
      const auto operand = statement.operands.begin() + k;
      call.dx[k] = gradient(*operand);
      if (call.dx[k] && std::find(statement.operands.begin(), operand, *operand) != operand) call.dx[k] = repeated(k);
    }
    return call;
  }

  // The gradient of an operand that is an earlier operand too: kernels add to those of all operands at once.
  double* repeated(size_t k) { return repeated_.data() + k * tile_; }

  // Gradients are kept for one tile, but kernels count rows as in the registers.
  void run_statement(int i, int64_t time, int64_t begin, int64_t end, int64_t tile_begin) {
    const Statement& statement = program_.statements[i];
    if (!active_[i] || !statement.primitive) return;
    Adjoint call = calls_[i];
    const int64_t shift = tile_begin * width_, first = (begin - tile_begin) * width_, size = (end - begin) * width_;
    call.begin = begin, call.end = end, call.time = time, call.dy -= shift;
    for (size_t k = 0; k < statement.operands.size(); ++k) {
      if (call.dx[k] == repeated(k)) std::fill_n(repeated(k) + first, size, 0.0);
      if (call.dx[k]) call.dx[k] -= shift;
    }
    statement.primitive->adjoint(call);
    for (size_t k = 1; k < statement.operands.size(); ++k)
      if (calls_[i].dx[k] == repeated(k)) {
        double *dx = gradient(statement.operands[k]), *more = repeated(k);
        for (int64_t n = first; n < first + size; ++n) dx[n] += more[n];
      }
  }
};

}  // namespace commodity::series
