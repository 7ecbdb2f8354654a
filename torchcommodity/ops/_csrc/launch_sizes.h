// Sizes of launches that are tuned. They are constants, so that results do not depend on which GPU it is.
#pragma once
#include <cstdint>

namespace commodity {

constexpr int64_t kChunk = 64;            // rows per item of gather_lag
constexpr int64_t kFewThreads = 1 << 15;  // fewer are in blocks of a warp, so that more multiprocessors have work
constexpr int64_t kBlocks = 1 << 20;      // at most; each thread then takes several items
// Of a scan over time: threads of a block, and threads whose rows are composed to one map
constexpr int kScanThreads = 512, kScanGroup = 4;
template <typename scalar_t>
constexpr int kScanRows = 64 / sizeof(scalar_t);  // of a thread, in its registers
constexpr int kScanBlocks = 2;                    // per multiprocessor, which limits the registers of a thread
constexpr int kMultiprocessors = 128;             // about, for the work of a block; results do not depend on it

}  // namespace commodity
