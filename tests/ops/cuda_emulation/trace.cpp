// Counts the memory accesses of emulated kernels. -fsanitize=thread makes the compiler call a function before each
// access; they are defined here, in place of the sanitizer's. This file is compiled without the option.
//
// Of each launch a sample runs: two runs of neighboring units. Lanes of a warp run one after another, and what they
// access between two barriers is aligned: the k-th access of each lane is one instruction of the warp.
#include "trace.h"

#include <algorithm>
#include <bitset>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kWarp = 32, kSector = 32, kPage = 4096;  // a sector is what a GPU reads from memory at once
constexpr int64_t kNeighbors = 32 * kWarp;             // threads of a run
constexpr uintptr_t kStack = 16 << 20;

struct Access {
  uintptr_t address;
  int bytes;
};

struct Launch {
  std::string kernel, body;
  int64_t units, run;
  int threads;
  int64_t serial, sampled = 0, instructions = 0, bytes = 0, sectors = 0, shared = 0, longest = 0, barriers = 0;
  int64_t memory = 0;  // bytes of shared memory of a unit
  std::unordered_map<uintptr_t, std::bitset<kPage / kSector>> touched;

  bool has(int64_t unit) const { return unit < run || (unit >= units / 2 && unit < units / 2 + run); }
};

std::unique_ptr<Launch> launch;
std::vector<std::vector<Access>> lanes;  // global accesses of each thread since the last barrier
std::vector<int64_t> accesses;           // of each thread since the last barrier, in global and shared memory
int64_t path = 0, barriers = 0;          // of the unit: accesses one after another, of the slowest thread of each phase
int lane = 0;
bool running = false;  // a unit of the sample
uintptr_t shared_begin = 0, shared_end = 0;
std::ostringstream report;

void count_warp(int first) {
  Launch& to = *launch;
  const int last = std::min<int>(first + kWarp, lanes.size());
  size_t most = 0;
  for (int i = first; i < last; ++i) most = std::max(most, lanes[i].size());
  to.instructions += most;
  std::vector<uintptr_t> sectors;
  for (size_t k = 0; k < most; ++k) {
    sectors.clear();
    for (int i = first; i < last; ++i) {
      if (k >= lanes[i].size()) continue;
      const Access& access = lanes[i][k];
      to.bytes += access.bytes;
      sectors.push_back(access.address / kSector);
      to.touched[access.address / kPage].set(access.address % kPage / kSector);
    }
    std::sort(sectors.begin(), sectors.end());
    to.sectors += std::unique(sectors.begin(), sectors.end()) - sectors.begin();
  }
  for (int i = first; i < last; ++i) lanes[i].clear();
}

void end_unit() {
  commodity::trace_barrier();
  launch->longest = std::max(launch->longest, path), launch->barriers = std::max(launch->barriers, barriers - 1);
  path = barriers = 0;
}

void end_launch() {
  if (!launch) return;
  if (launch->sampled) end_unit();
  int64_t touched = 0;
  for (const auto& [page, sectors] : launch->touched) touched += sectors.count();
  report << launch->kernel << '\t' << launch->body << '\t' << launch->units << '\t' << launch->threads << '\t'
         << launch->serial << '\t' << launch->sampled << '\t' << launch->instructions << '\t' << launch->bytes << '\t'
         << launch->sectors << '\t' << touched << '\t' << launch->shared << '\t' << launch->longest << '\t'
         << launch->barriers << '\t' << launch->memory << '\n';
  launch.reset();
}

void access(const void* pointer, int bytes) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!running) return;
  if (address >= shared_begin && address < shared_end) {
    ++launch->shared, ++accesses[lane];
    return;
  }
  const uintptr_t frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (address - (frame - kStack) < 2 * kStack) return;  // registers, and arguments of the kernel
  ++accesses[lane];
  lanes[lane].push_back({address, bytes});
}

}  // namespace

namespace commodity {

void trace_launch(const char* kernel, const char* body, int64_t units, int threads, int64_t serial) {
  end_launch();
  lanes.assign(threads, {}), accesses.assign(threads, 0);
  lane = 0, shared_begin = shared_end = 0;
  launch.reset(new Launch{kernel, body, units, std::max<int64_t>(1, kNeighbors / threads), threads, serial});
}

bool trace_runs(int64_t unit) {
  running = launch->has(unit);
  if (running && launch->sampled++) end_unit();
  return running;
}

void trace_end() { running = false; }

void trace_thread(int number) { lane = number % static_cast<int>(lanes.size()); }

void trace_barrier() {
  for (size_t first = 0; first < lanes.size(); first += kWarp) count_warp(static_cast<int>(first));
  path += *std::max_element(accesses.begin(), accesses.end()), ++barriers;
  std::fill(accesses.begin(), accesses.end(), 0);
}

void trace_shared(const void* memory, int64_t bytes) {
  shared_begin = reinterpret_cast<uintptr_t>(memory), shared_end = shared_begin + bytes;
  launch->memory = bytes;
}

}  // namespace commodity

#define HOOK(bytes)                                                 \
  void __tsan_read##bytes(void* p) { access(p, bytes); }            \
  void __tsan_write##bytes(void* p) { access(p, bytes); }           \
  void __tsan_unaligned_read##bytes(void* p) { access(p, bytes); }  \
  void __tsan_unaligned_write##bytes(void* p) { access(p, bytes); } \
  void __tsan_volatile_read##bytes(void* p) { access(p, bytes); }   \
  void __tsan_volatile_write##bytes(void* p) { access(p, bytes); }

extern "C" {
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16) void __tsan_read_range(void* p, size_t bytes) {
  access(p, static_cast<int>(bytes));
}
void __tsan_write_range(void* p, size_t bytes) { access(p, static_cast<int>(bytes)); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
unsigned __tsan_atomic32_fetch_add(volatile unsigned* p, unsigned n, int) { return __atomic_fetch_add(p, n, 5); }
char __tsan_atomic8_load(const volatile char* p, int) { return *p; }

// The launches since the last call, a line each.
const char* take_trace() {
  static std::string text;
  end_launch();
  text = report.str();
  report.str("");
  return text.c_str();
}
}
