// The memory formats of a product (B, C, ...): contiguous, or channels_last for (B, C, H, W).
#pragma once
#include "aten.h"

namespace commodity {

inline Tensor channels_to_end(const Tensor& x) {  // (B, C, H, W) -> (B, H, W, C)
  return torch::stable::transpose(torch::stable::transpose(x, 1, 2), 2, 3);
}

inline Tensor channels_from_end(const Tensor& x) {  // (B, H, W, C) -> (B, C, H, W)
  return torch::stable::transpose(torch::stable::transpose(x, 2, 3), 1, 2);
}

inline bool is_channels_last(const Tensor& x) {
  return x.dim() == 4 && !x.is_contiguous() && channels_to_end(x).is_contiguous();
}

// x in the memory format of `product`.
inline Tensor as_product(const Tensor& x, const Tensor& product) {
  return is_channels_last(product) ? channels_from_end(as_contiguous(channels_to_end(x))) : as_contiguous(x);
}

inline Tensor new_product(const Tensor& product) {
  if (!is_channels_last(product)) return new_empty(product, product.sizes());
  return channels_from_end(new_empty(product, channels_to_end(product).sizes()));
}

}  // namespace commodity
