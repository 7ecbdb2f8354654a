// Replaces ops/_csrc/launch.h where tests compile the .cu files with a C++ compiler: the same bodies run on the CPU,
// one item after another. It cannot show races or errors of the launch itself.
#pragma once
#include "native.h"

#define COMMODITY_CUDA(name) \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl(#name, TORCH_BOX(&name)); }

// Tests run the items in both orders: a result that depends on the order would be a race on a GPU.
inline bool reverse_order = false;
extern "C" void set_reverse_order(bool reverse) { reverse_order = reverse; }

namespace commodity {

constexpr int kWarp = 32, kScanThreads = 64, kScanRows = 3, kScanGroup = 2;
constexpr int kMultiprocessors = 1;
constexpr int64_t kChunk = 8;  // small, so that the short panels of the tests have many chunks

template <typename T>
inline T read(const T* address) {
  return *address;
}

inline double divide(double x, double y) { return x / y; }
inline void prefetch_line(const void*) {}

inline int64_t in_order(int64_t i, int64_t items) { return reverse_order ? items - 1 - i : i; }

template <typename Body>
void launch(const Tensor&, int64_t items, const Body& body) {
  for (int64_t i = 0; i < items; ++i) body(in_order(i, items));
}

struct ItemMemory {
  char* memory;

  template <typename T>
  T* array(int64_t begin) const {
    return reinterpret_cast<T*>(memory + begin);
  }
};

template <typename Body>
void launch_with_memory(const Tensor&, int64_t items, int64_t bytes, const Body& body) {
  std::vector<double> memory(bytes / sizeof(double));
  for (int64_t i = 0; i < items; ++i) body(in_order(i, items), ItemMemory{reinterpret_cast<char*>(memory.data())});
}

inline void publish(double* address, double value) { *address = value; }
inline double await(const double* address) { return *address; }

template <typename Thread, typename Run>
void for_each_thread(std::vector<Thread>& threads, const Run& run) {
  for (size_t i = 0; i < threads.size(); ++i) {
    const int number = static_cast<int>(in_order(i, threads.size()));
    run(threads[number], number);
  }
}

template <int phase = 0, typename Body>
void run_phases(const Body& body, std::vector<typename Body::Thread>& threads, typename Body::Shared& shared, int chain,
                int link) {
  for_each_thread(threads, [&](typename Body::Thread& thread, int number) {
    body.template run<phase>(thread, shared, chain, link, number);
  });
  if constexpr (phase + 1 < Body::kPhases) run_phases<phase + 1>(body, threads, shared, chain, link);
}

template <typename Body>
void launch_links(const Tensor&, int chains, int64_t links, const Tensor&, const Body& body) {
  typename Body::Shared shared;
  for (int64_t link = 0; link < links; ++link)
    for (int64_t i = 0; i < chains; ++i) {
      std::vector<typename Body::Thread> threads(kScanThreads);
      run_phases(body, threads, shared, static_cast<int>(in_order(i, chains)), static_cast<int>(link));
    }
}

// One thread runs all iterations of a loop before the next loop begins.
struct Team {
  template <typename Iteration>
  void each(int64_t n, const Iteration& iteration) const {
    for (int64_t i = 0; i < n; ++i) iteration(in_order(i, n));
  }
  template <typename Iteration>
  void each_row(int64_t n, const Iteration& iteration) const {
    each(n, iteration);
  }
  template <typename Iteration>
  void each_column(int64_t n, const Iteration& iteration) const {
    each(n, iteration);
  }
  template <typename T>
  void prefetch(const T*) const {}
};

template <typename Body>
void launch_teams(const Tensor&, int64_t panels, int64_t, int64_t bytes, const Body& body) {
  std::vector<double> memory(bytes / sizeof(double));
  for (int64_t i = 0; i < panels; ++i) body(Team{}, in_order(i, panels), memory.data());
}

template <typename Body>
void launch_loops(const Tensor&, int64_t blocks, int count, int64_t steps, const Body& body) {
  STD_TORCH_CHECK(count <= Body::kThreads, "too many threads");
  for (int64_t i = 0; i < blocks; ++i) {
    const int block = static_cast<int>(in_order(i, blocks));
    typename Body::Shared shared;
    std::memset(&shared, 0xff, sizeof(shared));  // NaN
    std::vector<typename Body::Thread> threads(count);
    for_each_thread(threads, [&](auto& thread, int number) { body.start(thread, shared, block, number); });
    for (int step = 0; step < steps; ++step) run_phases(body, threads, shared, block, step);
    for_each_thread(threads, [&](auto& thread, int number) { body.finish(thread, shared, block, number); });
  }
}

template <typename Body>
void launch_rows(const Tensor&, int64_t rows, int64_t terms, const Body& body) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = in_order(i, rows);
    double sums[kWarp][Body::kSums] = {};
    for (int64_t k = 0; k < terms; ++k) body.add(row, k, sums[k % kWarp]);
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      for (int lane = 0; lane < offset; ++lane)
        for (int s = 0; s < Body::kSums; ++s) sums[lane][s] += sums[lane + offset][s];
    body.finish(row, sums[0]);
  }
}

}  // namespace commodity
