// The threads of a block that works on a matrix: see launch_teams.
#pragma once
#include <algorithm>
#include <cstdint>

namespace commodity {

constexpr int kThreads = 256, kWarp = 32;

struct TeamSize {
  int columns, threads;
  explicit TeamSize(int64_t n)
      : columns(static_cast<int>(std::clamp<int64_t>(n, 1, kWarp))),
        threads(static_cast<int>(std::clamp<int64_t>(n, 1, kThreads / columns)) * columns) {}
};

}  // namespace commodity
