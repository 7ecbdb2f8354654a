// Sorted windows of a cache line of columns, side by side in vector registers.
//
// One sweep over all places takes the old value out and puts the new one in, without a branch. It costs as much as the
// window is long, and beats a search in each column while windows are short.
#pragma once
#include <memory>

#include "windows.h"

namespace commodity {

template <typename scalar_t>
struct SortedLanes {
  using row_t = std::conditional_t<sizeof(scalar_t) == 4, int32_t, int64_t>;  // as wide as a value, so lanes agree
  static constexpr int64_t kVectors = 2, kLanes = kVectors * 32 / sizeof(scalar_t);
  static constexpr scalar_t kNone = std::numeric_limits<scalar_t>::infinity();  // of a free place: they come last

  struct Values {
    typedef scalar_t Vector __attribute__((vector_size(32)));
    Vector of[kVectors];
  };
  struct Rows {
    typedef row_t Vector __attribute__((vector_size(32)));
    Vector of[kVectors];
  };

  const int64_t window;
  const std::unique_ptr<Values[]> values;  // one place more, for ever free
  const std::unique_ptr<Rows[]> rows;

  explicit SortedLanes(int64_t window) : window(window), values(new Values[window + 1]), rows(new Rows[window + 1]) {}

  inline void clear() {
    for (int64_t k = 0; k <= window; ++k)
      for (int c = 0; c < kVectors; ++c)
        values[k].of[c] = kNone - typename Values::Vector{}, rows[k].of[c] = typename Rows::Vector{};
  }
  inline scalar_t value(int64_t k, int64_t lane) const { return reinterpret_cast<const scalar_t*>(&values[k])[lane]; }
  inline int64_t row(int64_t k, int64_t lane) const { return reinterpret_cast<const row_t*>(&rows[k])[lane]; }

  // In each lane the first value that is no less than `old` makes way; `now` comes before the first that is greater, so
  // that equal values stand by age. Every place then holds what it held, its neighbor's or the new one.
  inline void replace(const Values& old, const Values& now, int64_t t) {
    Values here = values[0], before = here;
    Rows row = rows[0], row_before = row, passed{};
    const typename Rows::Vector today = typename Rows::Vector{} + static_cast<row_t>(t);
    for (int64_t k = 0; k < window; ++k)
      for (int c = 0; c < kVectors; ++c) {
        const auto next = values[k + 1].of[c];
        const auto next_row = rows[k + 1].of[c];
        const auto gone = here.of[c] >= old.of[c];
        const auto kept = gone ? next : here.of[c];
        const auto kept_row = gone ? next_row : row.of[c];
        const auto past = kept > now.of[c];
        values[k].of[c] = passed.of[c] ? before.of[c] : (past ? now.of[c] : kept);
        rows[k].of[c] = passed.of[c] ? row_before.of[c] : (past ? today : kept_row);
        passed.of[c] = past, before.of[c] = kept, row_before.of[c] = kept_row, here.of[c] = next, row.of[c] = next_row;
      }
  }
};

}  // namespace commodity
