// Statements with a few numbers of state per column, shared by the CPU and CUDA. An operation is a struct with
//   kOperands, kStates, kTapes; kStart: the state before the first row
//   step(x, state, tape) -> y              the next row; a tape takes what the adjoint needs besides the operands
//   adjoint(x, dy, tape, carry, dx)        sets dx; `carry` is what later rows add to the gradient of the state
#pragma once
#include "missing.h"

namespace commodity::series {

// y += seed_weight * a for the first `seed` values, then y += weight * (a - y).
struct Exponential {
  enum { kValue, kWeight, kSeed, kMinCount, kSeedWeight };
  static constexpr int kOperands = 5, kStates = 2, kTapes = 2, kCarries = 1;
  static constexpr double kStart = 0;

  static COMMODITY_INLINE double step(const double* x, double* state, double* tape) {
    const bool present = !missing(x[kValue]);
    const double before = state[0], count = state[1] + (present ? 1 : 0);
    const double seeding = x[kSeedWeight] * x[kValue], decaying = x[kWeight] * (x[kValue] - before);
    const double after = before + (count <= x[kSeed] ? seeding : decaying);
    tape[0] = before, tape[1] = count;
    state[0] = present ? after : before, state[1] = count;
    return ((count >= x[kMinCount]) & !missing(x[kSeed])) ? state[0] : kMissing;
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

  static COMMODITY_INLINE double step(const double* x, double* y, double* tape) {
    const double before = missing(y[0]) ? x[kInitial] : y[0], after = x[kDecay] * before + x[kStep];
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

struct ForwardFill {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  static COMMODITY_INLINE double step(const double* x, double* last, double*) {
    return last[0] = missing(x[0]) ? last[0] : x[0];
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    const double total = dy + carry[0];
    dx[0] = missing(x[0]) ? 0 : total;
    carry[0] = missing(x[0]) ? total : 0;
  }
};

struct CountValues {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0;
  static constexpr double kStart = 0;
  static COMMODITY_INLINE double step(const double* x, double* count, double*) {
    return count[0] += missing(x[0]) ? 0 : 1;
  }
};

struct CumulativeSum {
  static constexpr int kOperands = 1, kStates = 1, kTapes = 0, kCarries = 1;
  static constexpr double kStart = kMissing;
  static COMMODITY_INLINE double step(const double* x, double* sum, double*) {
    const double total = (missing(sum[0]) ? 0 : sum[0]) + x[0];
    return sum[0] = missing(x[0]) ? sum[0] : total;
  }
  static COMMODITY_INLINE void adjoint(const double* x, double dy, const double*, double* carry, double* dx) {
    carry[0] += dy;
    dx[0] = missing(x[0]) ? 0 : carry[0];
  }
};

}  // namespace commodity::series
