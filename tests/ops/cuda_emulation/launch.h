// Replaces ops/_csrc/launch.h where tests compile the .cu files with a C++ compiler: the same bodies run on the CPU,
// one item after another. It cannot show races or errors of the launch itself.
#pragma once
#include <array>
#include <span>

#include "native.h"
#include "team_size.h"
#include "trace.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl(#name, TORCH_BOX(&name)); }

// Tests run the items in both orders: a result that depends on the order would be a race on a GPU.
inline bool reverse_order = false;
extern "C" void set_reverse_order(bool reverse) { reverse_order = reverse; }

#if defined(COMMODITY_TRACE)
#include "launch_sizes.h"
namespace commodity {
#else
namespace commodity {
constexpr int kScanThreads = 64, kScanGroup = 2;
template <typename scalar_t>
constexpr int kScanRows = 3;
constexpr int kMultiprocessors = 1;
constexpr int64_t kChunk = 8;  // small, so that the short panels of the tests have many chunks
#endif

template <typename T>
inline T read(const T* address) {
  return *address;
}

inline double divide(double x, double y) { return x / y; }
inline void prefetch_line(const void*) {}

#if defined(COMMODITY_TRACE)
inline int64_t in_order(int64_t i, int64_t) { return i; }  // without a read of memory
#else
inline int64_t in_order(int64_t i, int64_t items) { return reverse_order ? items - 1 - i : i; }
#endif

// Runs all items, of which each is a thread.
template <typename Body, typename Run>
void for_each_item(const char* kernel, int64_t items, const Run& run) {
  trace_launch(kernel, typeid(Body).name(), (items + kWarp - 1) / kWarp, kWarp);
  for (int64_t i = 0; i < items; ++i) {
    const int64_t item = in_order(i, items);
    if (item % kWarp == 0 && !trace_runs(item / kWarp)) {
      i += kWarp - 1;
      continue;
    }
    trace_thread(static_cast<int>(item % kWarp));
    run(item);
  }
  trace_end();
}

// Runs all blocks in order.
template <typename Body, typename Run>
void for_each_block(const char* kernel, int64_t blocks, int threads, const Run& run) {
  trace_launch(kernel, typeid(Body).name(), blocks, threads);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t block = in_order(i, blocks);
    if (trace_runs(block)) run(block);
  }
  trace_end();
}

template <typename Body>
void launch(const Tensor&, int64_t items, const Body& body) {
  for_each_item<Body>("each_item", items, [&](int64_t i) { body(i); });
}

struct ItemMemory {
  char* memory;

  template <typename T>
  T* array(int64_t begin) const {
    return reinterpret_cast<T*>(memory + begin);
  }
};

template <typename Body>
void launch_with_memory(const Tensor&, int64_t items, int64_t bytes, const Body& body, int64_t = 0) {
  std::vector<double> memory(bytes / sizeof(double));
  for_each_item<Body>("each_item_with_memory", items, [&](int64_t i) {
    trace_shared(memory.data(), bytes);
    body(i, ItemMemory{reinterpret_cast<char*>(memory.data())});
  });
}

inline void publish(double* address, double value) { *address = value; }
inline double await(const double* address) { return *address; }

template <typename Thread, typename Run>
void for_each_thread(std::span<Thread> threads, const Run& run) {
  for (size_t i = 0; i < threads.size(); ++i) {
    const int number = static_cast<int>(in_order(i, threads.size()));
    trace_thread(number);
    run(threads[number], number);
  }
  trace_barrier();
}

template <int phase = 0, typename Body>
void run_phases(const Body& body, std::span<typename Body::Thread> threads, typename Body::Shared& shared, int chain,
                int link) {
  for_each_thread(threads, [&](typename Body::Thread& thread, int number) {
    body.template run<phase>(thread, shared, chain, link, number);
  });
  if constexpr (phase + 1 < Body::kPhases) run_phases<phase + 1>(body, threads, shared, chain, link);
}

template <typename Body>
void launch_links(const Tensor&, int chains, int64_t links, const Tensor&, const Body& body) {
  typename Body::Shared shared;
  trace_launch("each_link", typeid(Body).name(), chains * links, kScanThreads, links);
  for (int64_t link = 0; link < links; ++link)
    for (int64_t i = 0; i < chains; ++i) {
      const int64_t chain = in_order(i, chains);
      if (!trace_runs(link * chains + chain)) continue;
      trace_shared(&shared, sizeof(shared));
      std::array<typename Body::Thread, kScanThreads> threads{};
      run_phases(body, std::span(threads), shared, static_cast<int>(chain), static_cast<int>(link));
    }
  trace_end();
}

// One thread runs all iterations of a loop before the next loop begins.
struct Team {
  TeamSize size;
  mutable int64_t row = 0;

  template <typename Iteration>
  void each(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) {
      trace_thread(static_cast<int>(in_order(i, n) % size.threads));
      iteration(in_order(i, n));
    }
    trace_barrier();
  }
  template <typename Iteration>
  void each_row(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) iteration(row = in_order(i, n));
    trace_barrier();
  }
  template <typename Iteration>
  void each_column(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t column = in_order(i, n);
      trace_thread(static_cast<int>((row * size.columns + column % size.columns) % size.threads));
      iteration(column);
    }
  }
  template <typename T>
  void prefetch(const T*) const {}
};

template <typename Body>
void launch_teams(const Tensor&, int64_t panels, int64_t n, int64_t bytes, const Body& body) {
  std::vector<double> memory(bytes / sizeof(double));
  for_each_block<Body>("each_team", panels, TeamSize(n).threads, [&](int64_t panel) {
    trace_shared(memory.data(), bytes);
    body(Team{TeamSize(n)}, panel, memory.data());
  });
}

template <typename Body>
void launch_loops(const Tensor&, int64_t blocks, int count, int64_t steps, const Body& body) {
  STD_TORCH_CHECK(count <= Body::kThreads, "too many threads");
  for_each_block<Body>("each_loop", blocks, count, [&](int64_t i) {
    const int block = static_cast<int>(i);
    typename Body::Shared shared;
    trace_shared(&shared, sizeof(shared));
    std::memset(&shared, 0xff, sizeof(shared));  // NaN
    std::array<typename Body::Thread, Body::kThreads> registers{};
    const auto threads = std::span(registers).first(count);
    for_each_thread(threads, [&](auto& thread, int number) { body.start(thread, shared, block, number); });
    for (int step = 0; step < steps; ++step) run_phases(body, threads, shared, block, step);
    for_each_thread(threads, [&](auto& thread, int number) { body.finish(thread, shared, block, number); });
  });
}

template <typename Body>
void launch_rows(const Tensor&, int64_t rows, int64_t terms, const Body& body) {
  for_each_block<Body>("each_row", rows, kWarp, [&](int64_t row) {
    double sums[kWarp][Body::kSums] = {};
    for (int64_t k = 0; k < terms; ++k) {
      trace_thread(static_cast<int>(k % kWarp));
      body.add(row, k, sums[k % kWarp]);
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset; ++lane)
        for (int s = 0; s < Body::kSums; ++s) sums[lane][s] += sums[lane + offset][s];
    body.finish(row, sums[0]);
  });
}

}  // namespace commodity
