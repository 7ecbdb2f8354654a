// Runs the statements of a program on tiles of one block of columns, with the state of the block.
#pragma once
#include "program.h"

namespace commodity::series {

constexpr int64_t kTileElements = 1024;  // per register, of a few columns: those that are alive stay in the L1 cache
constexpr int64_t kTileRows = 4;  // at least, for which a scan or a window keeps its state in processor registers

// Whole vectors of columns; rows that are a multiple of 1024 bytes apart would compete for the same lines of a cache.
inline int64_t padded(int64_t columns) {
  const int64_t width = columns == 1 ? 1 : (columns + kLanes - 1) / kLanes * kLanes;
  return width % 128 == 0 ? width + kLanes : width;
}
inline int64_t tile_rows(int64_t width, int64_t steps) {
  return std::max<int64_t>(1, std::min(std::max(kTileElements / width, kTileRows), steps));
}

class TileRunner {
 public:
  // Registers of `capacity` rows. `traced`: the state is that of a backward pass; `keep`: so are the registers, one for
  // each statement, and there are tapes.
  TileRunner(const Program& program, int64_t width, int64_t capacity, bool traced, bool keep)
      : program_(program),
        width_(width),
        capacity_(capacity),
        traced_(traced),
        state_((traced ? program.traced_states : program.states) * width),
        memory_((keep ? program.statements.size() : program.buffers) * capacity * width),
        tape_(keep ? program.tapes * capacity * width : 0) {
    const std::vector<Statement>& statements = program.statements;
    for (size_t i = 0; i < statements.size(); ++i) {
      registers_.push_back(keep ? memory_.data() + int64_t(i) * capacity * width : allocate(statements[i]));
      if (statements[i].kind == Kind::kConstant)
        std::fill_n(registers_[i], capacity * width, statements[i].attributes[0]);
    }
    for (size_t i = 0; i < statements.size(); ++i) calls_.push_back(call(statements[i], registers_[i], keep));
  }

  double* value(int statement) { return registers_[statement]; }
  int64_t width() const { return width_; }
  AlignedVector<double>& state() { return state_; }
  double* tape(const Statement& statement) { return tape_.data() + statement.tape * capacity_ * width_; }

  // Sets the state of a new runner to that before the first row.
  void start() {
    for (const Statement& statement : program_.statements)
      if (statement.primitive && statement.primitive->start)
        statement.primitive->start(statement.attributes.data(), traced_ ? statement.traced_states : statement.states,
                                   width_, state_of(statement));
  }

  // Moves what short lags read of the last `rows` rows before row 0.
  void advance(int64_t rows) {
    for (size_t i = 0; i < registers_.size(); ++i)
      if (const int64_t history = program_.statements[i].history)
        std::copy_n(registers_[i] + (rows - history) * width_, history * width_, registers_[i] - history * width_);
  }

  // Calls body(state, row) for the rows before row `time` of the series that short lags keep between calls.
  template <typename Body>
  void for_history(int64_t time, const Body& body) {
    for (size_t i = 0; i < registers_.size(); ++i) {
      const Statement& statement = program_.statements[i];
      for (int64_t r = 0; r < statement.delay; ++r)
        body(state_of(statement) + (time + r) % statement.delay * width_, registers_[i] + r * width_);
    }
  }
  void load_history(int64_t time) {
    for_history(time, [&](const double* state, double* row) { std::copy_n(state, width_, row); });
  }
  void save_history(int64_t time) {
    for_history(time, [&](double* state, const double* row) { std::copy_n(row, width_, state); });
  }

  // Rows [begin, end) of the registers, whose row 0 is row `time` of the series. The inputs have been loaded.
  void run(int64_t time, int64_t begin, int64_t end) {
    size_t loop = 0;
    for (int i = 0; i < int(calls_.size()); ++i) {
      if (loop < program_.loops.size() && program_.loops[loop].first == i) {
        for (int64_t r = begin; r < end; ++r)
          for (int k = i; k <= program_.loops[loop].last; ++k) run_statement(k, time, r, r + 1);
        i = program_.loops[loop++].last;
      } else {
        run_statement(i, time, begin, end);
      }
    }
  }

 private:
  const Program& program_;
  const int64_t width_, capacity_;
  const bool traced_;
  AlignedVector<double> state_, memory_, tape_;
  std::vector<AlignedVector<double>> histories_;
  std::vector<double*> registers_;
  std::vector<Forward> calls_;

  double* state_of(const Statement& statement) {
    return state_.data() + (traced_ ? statement.traced_state : statement.state) * width_;
  }

  // In a backward pass a short lag is as any other.
  bool reads_history(const Statement& statement) const { return statement.delay && !traced_; }

  double* allocate(const Statement& statement) {
    if (reads_history(statement)) return registers_[statement.operands[0]] - statement.delay * width_;
    if (!statement.history && !statement.delay)
      return memory_.data() + std::max(statement.buffer, 0) * capacity_ * width_;
    histories_.emplace_back((statement.history + capacity_) * width_);
    return histories_.back().data() + statement.history * width_;
  }

  Forward call(const Statement& statement, double* y, bool keep) {
    Forward call{};
    call.width = width_, call.y = y;
    for (size_t k = 0; k < statement.operands.size() && k < kOperands; ++k) {
      call.x[k] = registers_[statement.operands[k]];
      call.constant[k] = program_.statements[statement.operands[k]].kind == Kind::kConstant;
    }
    call.state = state_of(statement), call.traced = traced_;
    call.tape = keep && statement.primitive && statement.primitive->tapes ? tape(statement) : nullptr;
    call.attributes = statement.attributes.data();
    call.attribute_count = int(statement.attributes.size());
    return call;
  }

  void run_statement(int i, int64_t time, int64_t begin, int64_t end) {
    const Primitive* primitive = program_.statements[i].primitive;
    if (!primitive || reads_history(program_.statements[i])) return;
    Forward& call = calls_[i];
    call.begin = begin, call.end = end, call.time = time;
    primitive->forward(call);
  }
};

}  // namespace commodity::series
