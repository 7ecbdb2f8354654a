// Sorted windows of one cache line of columns, side by side in vector registers.
//
// One branch-free pass over all positions removes the old value and inserts the new one in every column. Its cost is
// proportional to the window, which beats a binary search per column while windows are short.
#pragma once
#include <memory>

#include "windows.h"

namespace commodity {

template <typename scalar_t>
struct SortedLanes {
  using row_t = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;  // as wide as a value, so lanes agree
  static constexpr int64_t kVectors = 2, kLanes = kVectors * 32 / sizeof(scalar_t);
  static constexpr scalar_t kEmpty = std::numeric_limits<scalar_t>::infinity();  // empty positions sort last

  struct Values {
    typedef scalar_t Vector __attribute__((vector_size(32)));
    Vector vector[kVectors];
  };
  struct Rows {
    typedef row_t Vector __attribute__((vector_size(32)));
    Vector vector[kVectors];
  };

  const int64_t window;
  const std::unique_ptr<Values[]> values;  // window + 1 positions; the last one is always empty
  const std::unique_ptr<Rows[]> rows;

  explicit SortedLanes(int64_t window) : window(window), values(new Values[window + 1]), rows(new Rows[window + 1]) {}

  inline void clear() {
    for (int64_t k = 0; k <= window; ++k)
      for (int c = 0; c < kVectors; ++c) {
        values[k].vector[c] = kEmpty - typename Values::Vector{};
        rows[k].vector[c] = typename Rows::Vector{};
      }
  }
  inline scalar_t value(int64_t k, int64_t lane) const { return reinterpret_cast<const scalar_t*>(&values[k])[lane]; }
  inline int64_t row(int64_t k, int64_t lane) const { return reinterpret_cast<const row_t*>(&rows[k])[lane]; }

  // In each lane, removes the first value that is not less than `removed` and inserts `inserted` before the first that
  // is greater, so that equal values stay sorted by age. Each position then holds its own value, a neighbor's or the
  // inserted one.
  inline void replace(const Values& removed, const Values& inserted, int64_t t) {
    Values value = values[0], previous = value;
    Rows row = rows[0], previous_row = row, passed{};
    const typename Rows::Vector inserted_row = typename Rows::Vector{} + static_cast<row_t>(t);
    for (int64_t k = 0; k < window; ++k)
      for (int c = 0; c < kVectors; ++c) {
        const auto next = values[k + 1].vector[c];
        const auto next_row = rows[k + 1].vector[c];
        const auto shifted = value.vector[c] >= removed.vector[c];
        const auto remaining = shifted ? next : value.vector[c];
        const auto remaining_row = shifted ? next_row : row.vector[c];
        const auto greater = remaining > inserted.vector[c];
        values[k].vector[c] = passed.vector[c] ? previous.vector[c] : (greater ? inserted.vector[c] : remaining);
        rows[k].vector[c] = passed.vector[c] ? previous_row.vector[c] : (greater ? inserted_row : remaining_row);
        passed.vector[c] = greater, previous.vector[c] = remaining, previous_row.vector[c] = remaining_row;
        value.vector[c] = next, row.vector[c] = next_row;
      }
  }
};

}  // namespace commodity
