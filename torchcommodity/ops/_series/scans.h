// Statements with a few numbers of state per column, shared by the CPU and CUDA. An operation is a struct with
//   kOperands, kStates, kTapes; kStart: the state before the first row
//   step(x, state, tape) -> y              the next row, of a column or, on the CPU, a vector of columns; a tape takes
//                                          what the adjoint needs besides the operands
//   adjoint(x, dy, tape, carry, dx)        sets dx; `carry` is what later rows add to the gradient of the state
#pragma once
#include "operations.h"

namespace commodity::series {

// y += seed_weight * a for the first `seed` values, then y += weight * (a - y).
struct Exponential {
  enum { kValue, kWeight, kSeed, kMinCount, kSeedWeight };
  static constexpr int kOperands = 5, kStates = 2, kTapes = 2, kCarries = 1;
  static constexpr double kStart = 0;

  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* state, Number* tape) {
    const auto absent = missing(x[kValue]);
    const Number before = state[0], next = state[1] + 1, count = absent ? state[1] : next;
    const Number seeding = x[kSeedWeight] * x[kValue], decaying = x[kWeight] * (x[kValue] - before);
    const Number change = count <= x[kSeed] ? seeding : decaying, after = before + change;
    tape[0] = before, tape[1] = count;
    state[0] = absent ? before : after, state[1] = count;
    return (count < x[kMinCount]) | missing(x[kMinCount]) | missing(x[kSeed]) ? Number{} + kMissing : state[0];
  }

  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double* tape, double* carry, double* dx) {
    const bool present = !missing(x[kValue]) & !missing(x[kWeight]) & !missing(x[kSeedWeight]);
    const bool seeding = tape[1] <= x[kSeed];
    const double total = dy + carry[0], decayed = total * (1 - x[kWeight]);
    const double slope = total * (seeding ? x[kSeedWeight] : x[kWeight]);
    const double seed_term = total * x[kValue], weight_term = total * (x[kValue] - tape[0]);
    dx[kValue] = present ? slope : 0;
    dx[kWeight] = present & !seeding ? weight_term : 0;
    dx[kSeedWeight] = present & seeding ? seed_term : 0;
    dx[kSeed] = dx[kMinCount] = 0;
    carry[0] = present & !seeding ? decayed : total;
  }
};

// y = decay * y + step, from the first row where `initial` is present too.
struct Recurrence {
  enum { kDecay, kStep, kInitial };
  static constexpr int kOperands = 3, kStates = 1, kTapes = 1, kCarries = 1;
  static constexpr double kStart = kMissing;

  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* y, Number* tape) {
    const Number before = missing(y[0]) ? x[kInitial] : y[0], after = x[kDecay] * before + x[kStep];
    tape[0] = y[0];
    return y[0] = missing(x[kDecay]) | missing(x[kStep]) ? y[0] : after;
  }

  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double* tape, double* carry, double* dx) {
    const bool started = !missing(tape[0]);
    const double before = started ? tape[0] : x[kInitial], total = dy + carry[0];
    const bool runs = !missing(x[kDecay]) & !missing(x[kStep]) & !missing(before);
    const double decay_term = total * before, decayed = total * x[kDecay];
    dx[kDecay] = runs ? decay_term : 0;
    dx[kStep] = runs ? total : 0;
    dx[kInitial] = runs & !started ? decayed : 0;
    carry[0] = runs ? (started ? decayed : 0) : total;
  }
};

// y += weight * (x - y), from the first row where `initial` is present too.
struct Smooth {
  enum { kValue, kWeight, kInitial };
  static constexpr int kOperands = 3, kStates = 1, kTapes = 1, kCarries = 1;
  static constexpr double kStart = kMissing;

  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* y, Number* tape) {
    const Number before = missing(y[0]) ? x[kInitial] : y[0], after = before + x[kWeight] * (x[kValue] - before);
    tape[0] = y[0];
    return y[0] = missing(x[kValue]) | missing(x[kWeight]) ? y[0] : after;
  }

  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double* tape, double* carry, double* dx) {
    const bool started = !missing(tape[0]);
    const double before = started ? tape[0] : x[kInitial], total = dy + carry[0];
    const bool runs = !missing(x[kValue]) & !missing(x[kWeight]) & !missing(before);
    const double slope = total * x[kWeight], weight_term = total * (x[kValue] - before), rest = total - slope;
    dx[kValue] = runs ? slope : 0;
    dx[kWeight] = runs ? weight_term : 0;
    dx[kInitial] = runs & !started ? rest : 0;
    carry[0] = runs ? (started ? rest : 0) : total;
  }
};

struct ForwardFill {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* last, Number*) {
    return last[0] = missing(x[0]) ? last[0] : x[0];
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    const double total = dy + carry[0];
    dx[0] = missing(x[0]) ? 0 : total;
    carry[0] = missing(x[0]) ? total : 0;
  }
};

// The last value before this row.
struct Previous {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* last, Number*) {
    const Number before = last[0];
    last[0] = missing(x[0]) ? before : x[0];
    return before;
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    dx[0] = missing(x[0]) ? 0 : carry[0];
    carry[0] = missing(x[0]) ? carry[0] + dy : dy;
  }
};

// Change from the last value before this row.
struct Change {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* last, Number*) {
    const Number before = last[0];
    last[0] = missing(x[0]) ? before : x[0];
    return x[0] - before;
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    const double total = dy + carry[0];
    dx[0] = missing(x[0]) ? 0 : total;
    carry[0] = missing(x[0]) ? carry[0] : -dy;
  }
};

// max(high, previous close) - min(low, previous close). At a tie the gradient goes to the price of this row.
struct TrueRange {
  enum { kHigh, kLow, kClose };
  static constexpr int kOperands = 3, kStates = 1, kTapes = 1, kCarries = 1;
  static constexpr double kStart = kMissing;

  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* last, Number* tape) {
    const Number before = tape[0] = last[0];
    last[0] = missing(x[kClose]) ? before : x[kClose];
    return Maximum::value(x[kHigh], before) - Minimum::value(x[kLow], before);
  }

  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double* tape, double* carry, double* dx) {
    const double of_high = x[kHigh] >= tape[0] ? dy : 0, of_low = x[kLow] <= tape[0] ? -dy : 0;
    const double of_previous = -of_high - of_low, total = carry[0] + of_previous;
    dx[kHigh] = of_high, dx[kLow] = of_low;
    dx[kClose] = missing(x[kClose]) ? 0 : carry[0];
    carry[0] = missing(x[kClose]) ? total : of_previous;
  }
};

struct CountValues {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0;
  static constexpr double kStart = 0;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* count, Number*) {
    const Number next = count[0] + 1;
    return count[0] = missing(x[0]) ? count[0] : next;
  }
};

// Missing in the first `rows` rows that have a value.
struct Skip {
  enum { kValue, kRows };
  static constexpr int kOperands = 2, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = 0;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* count, Number* tape) {
    CountValues::step(x, count, tape);
    return count[0] > x[kRows] ? x[kValue] : Number{} + kMissing;
  }
  static COMMODITY_INLINE void adjoint(const double*, double dy, const double*, double*, double* dx) {
    dx[kValue] = dy, dx[kRows] = 0;
  }
};

struct CumulativeSum {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  template <typename Number>
  static COMMODITY_INLINE Number step(const Number* x, Number* sum, Number*) {
    const Number before = missing(sum[0]) ? Number{} : sum[0], total = before + x[0];
    return sum[0] = missing(x[0]) ? sum[0] : total;
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    carry[0] += dy;
    dx[0] = missing(x[0]) ? 0 : carry[0];
  }
};

}  // namespace commodity::series
