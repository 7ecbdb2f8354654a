// The inputs of a program, contiguous and alike, and the shape of its results.
#pragma once
#include <aten.h>
#include <native.h>

#include <optional>
#include <vector>

namespace commodity::series {

struct __attribute__((visibility("hidden"))) Panel {
  std::vector<Tensor> inputs;
  Panels shape;

  // `count`: how many inputs the program reads.
  Panel(const char* operation, int count, const Tensor& x0, const std::vector<const std::optional<Tensor>*>& rest)
      : inputs{as_contiguous(x0)}, shape(inputs[0]) {
    for (const std::optional<Tensor>* x : rest)
      if (*x) inputs.push_back(as_contiguous(**x)), check_same(operation, inputs[0], inputs.back());
    STD_TORCH_CHECK(int(inputs.size()) >= count, operation, ": the program reads ", count, " inputs; got ",
                    inputs.size());
  }

  // (..., K, T, N), or (..., T, N) for one channel.
  std::vector<int64_t> result_shape(size_t channels) const {
    std::vector<int64_t> sizes(inputs[0].sizes().begin(), inputs[0].sizes().end());
    if (channels != 1) sizes.insert(sizes.end() - 2, int64_t(channels));
    return sizes;
  }
};

}  // namespace commodity::series
