// For every CPU kernel: LibTorch's stable ABI, the parallel loop over blocks of columns, the registration macro.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "errors.h"
#include "portable.h"
#include "threads.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace commodity {

using torch::stable::contiguous;
using torch::stable::new_zeros;
using torch::stable::Tensor;

// new_empty(like, sizes, dtype): contiguous memory on the device of `like`, without a call of the dispatcher, of which
// torch's function of this name makes one. An object, so that a call does not find that function too.
struct NewEmpty {
  Tensor operator()(const Tensor& like, torch::headeronly::IntHeaderOnlyArrayRef sizes,
                    std::optional<torch::headeronly::ScalarType> dtype = std::nullopt) const {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t axis = strides.size(); axis-- > 1;)
      strides[axis - 1] = strides[axis] * std::max<int64_t>(1, sizes[axis]);
    int32_t type, device, index;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &type));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &index));
    if (dtype) type = torch::stable::detail::to<int32_t>(torch::stable::detail::from(*dtype));
    AtenTensorHandle memory;
    TORCH_ERROR_CODE_CHECK(
        aoti_torch_empty_strided(sizes.size(), sizes.data(), strides.data(), type, device, index, &memory));
    return Tensor(memory);
  }
};
inline constexpr NewEmpty new_empty;

// Inlines everything that a function calls into it, so that its loops are vectorized.
#if defined(__GNUC__) && !defined(__clang__)
#define COMMODITY_SIMD __attribute__((flatten))
#else
#define COMMODITY_SIMD
#endif

constexpr int64_t kBlock = 64;       // columns per block: whole cache lines
constexpr int64_t kGrain = 1 << 15;  // elements that are worth waking a thread for

// The sizes of a contiguous batch of panels (batch, steps, assets).
struct Panels {
  int64_t batch, steps, assets;
  explicit Panels(const Tensor& x)
      : batch(x.numel() ? x.numel() / (x.size(-2) * x.size(-1)) : 0), steps(x.size(-2)), assets(x.size(-1)) {}
  Panels(int64_t batch, int64_t steps, int64_t assets) : batch(batch), steps(steps), assets(assets) {}
  int64_t size() const { return steps * assets; }
};

// Calls body(panel, first, last) for every block of columns [first, last) of every panel, in parallel. Blocks do not
// depend on the number of threads, so neither do the results. Where the body allows more than a block, up to
// `max_columns` columns, a thread has its share of a panel in one piece: memory is faster by whole rows.
template <typename Body>
void for_each_block(const Panels& panels, const Body& body, int64_t max_columns = kBlock) {
  if (panels.assets == 0) return;
  const int64_t blocks = (panels.assets + kBlock - 1) / kBlock;
  // 100 columns are split into 56 and 44, not 64 and 36
  const int64_t average = (panels.assets + blocks - 1) / blocks, block = (average + 7) / 8 * 8;
  const int64_t elements = std::max<int64_t>(1, panels.steps * std::min(block, panels.assets));
  const int64_t threads = torch::stable::get_num_threads();
  const int64_t share = max_columns > kBlock ? (blocks + threads - 1) / threads : 1;
  const int64_t grain = std::max(share, kGrain / elements);
  parallel_for(0, panels.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, merged = 1; i < end; i += merged) {
      const int64_t first = (i % blocks) * block;
      merged = std::max<int64_t>(1, std::min({end - i, blocks - i % blocks, max_columns / block}));
      body(i / blocks, first, std::min(first + merged * block, panels.assets));
    }
  });
}

// Backs a large new output with huge pages: the page faults of small ones cost more than the arithmetic. Touches each
// page once, because two threads that fault on the same page both clear it.
inline Tensor on_huge_pages(Tensor y) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t page = uintptr_t(1) << 21;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(y.data_ptr());
  const uintptr_t first = (begin + page - 1) / page, last = (begin + y.numel() * y.element_size()) / page;
  if (first >= last) return y;
  madvise(reinterpret_cast<void*>(first * page), (last - first) * page, MADV_HUGEPAGE);
  parallel_for(first, last, 1, [](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) *reinterpret_cast<volatile char*>(i * page) = 0;
  });
#endif
  return y;
}

// Calls a templated body for the dtype of `x`, float or double: dispatch(..., [&]<typename scalar_t>() { ... }).
template <typename Body>
void dispatch(const char* operation, const Tensor& x, const Body& body) {
  using torch::headeronly::ScalarType;
  const ScalarType dtype = x.scalar_type();
  STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double, operation,
                  ": must be float32 or float64; got ", torch::headeronly::toString(dtype));
  dtype == ScalarType::Float ? body.template operator()<float>() : body.template operator()<double>();
}

inline void check_same(const char* operation, const Tensor& x, const Tensor& y) {
  STD_TORCH_CHECK(x.sizes().equals(y.sizes()) && x.scalar_type() == y.scalar_type(), operation,
                  ": all panels must have the same shape and dtype");
}

// The number of panels (..., T, N), which is not that of `Panels` where T or N is 0.
inline int64_t count_panels(const Tensor& x) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < x.dim() - 2; ++axis) count *= x.size(axis);
  return count;
}

// Checks that x has `rows` rows of N values for each panel (..., T, N).
inline void check_rows(const char* operation, const char* name, const Tensor& x, const Tensor& panel,
                       int64_t rows = 1) {
  STD_TORCH_CHECK(panel.dim() >= 2 && x.numel() == rows * count_panels(panel) * panel.size(-1) &&
                      x.scalar_type() == panel.scalar_type(),
                  operation, ": ", name, " must have ", rows, " x N values for each panel (..., T, N), in its dtype");
}

// A window that no row has, as one that needs no memory for the rows beyond T.
inline int64_t limit_window(int64_t window, int64_t steps) { return std::min(window, steps + 2); }

}  // namespace commodity

// Registers the CPU kernel, and the schema, so that a compiled model runs in a process without the Python package.
#define COMMODITY_OPERATOR(name, schema)                               \
  STABLE_TORCH_LIBRARY_FRAGMENT(commodity, m) { m.def(#name schema); } \
  STABLE_TORCH_LIBRARY_IMPL(commodity, CPU, m) { m.impl(#name, COMMODITY_BOX(name)); }
