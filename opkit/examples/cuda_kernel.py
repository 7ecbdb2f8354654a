"""y = x s(x), s(x) = 1 / (1 + e^-x): a kernel in C++ and CUDA, built when the module is imported.

With torch's operators, sigmoid and product read and write memory more often than needed; a kernel makes one pass. With
s' = s (1 - s),

    dL/dx = (s + x s (1 - s)) dL/dy

The formula needs x only. It is made of torch's operators, so it can be differentiated again.

`opkit.load_inline` builds the sources below into one library on LibTorch's stable ABI, in seconds, and caches it. Load
it before the record is made: the library declares the operator, and the record uses its kernels. The C++ kernel runs on
the CPU, the CUDA kernel on a GPU, and the reference on all other devices (MPS, XPU).
"""

import sys

import torch
from torch import Tensor
from torch.nn import functional as F

import torch_opkit as opkit
from torch_opkit import Cases, Op, Sample

BODY = """
// One element, for both kernels: OPKIT_INLINE is __host__ __device__ under nvcc.
template <typename scalar_t>
struct Swish {
  const scalar_t* x;
  scalar_t* y;
  OPKIT_INLINE void operator()(int64_t i) const { y[i] = x[i] / (1 + exp(-x[i])); }
};
"""

CPP = f"""{BODY}
#if defined(WITH_CUDA)
void swish_on_cuda(const Tensor& x, const Tensor& y);  // in the CUDA source
#endif

Tensor swish(const Tensor& x_) {{
  const Tensor x = contiguous(x_);  // a name keeps the Tensor alive as long as its pointers
  Tensor y = new_empty(x, x.sizes());
#if defined(WITH_CUDA)
  if (x.is_cuda()) {{
    swish_on_cuda(x, y);
    return y;
  }}
#endif
  dispatch<float, double>(x, "swish", [&]<typename scalar_t>() {{
    const Swish<scalar_t> body{{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>()}};
    parallel(x.numel(), 1, [&](int64_t begin, int64_t end) {{
      for (int64_t i = begin; i < end; ++i) body(i);
    }});
  }});
  return y;
}}
"""

CUDA = f"""{BODY}
void swish_on_cuda(const Tensor& x, const Tensor& y) {{
  dispatch<float, double>(x, "swish", [&]<typename scalar_t>() {{
    launch(x, x.numel(), Swish<scalar_t>{{x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>()}});
  }});
}}
"""

ON_GPU = torch.cuda.is_available()
opkit.load_inline(
    "examples", CPP, CUDA if ON_GPU else None, functions=["swish"], extra_cflags=["-DWITH_CUDA"] if ON_GPU else []
)


def swish(x: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N)
    """x times its sigmoid, as `torch.nn.functional.silu`.

    Example:
        >>> swish(torch.tensor([[0.0, 1.0]]))
        tensor([[0.0000, 0.7311]])
    """
    y: Tensor = operator(x)
    return y


def _reference(x: Tensor) -> Tensor:
    return x * x.sigmoid()


def _backward(grad: Tensor, *, x: Tensor) -> Tensor:
    # dL/dx = s (1 + x (1 - s)) dL/dy
    x = x.masked_fill(x.isnan(), 0)
    s = x.sigmoid()
    return s * (1 + x * (1 - s)) * grad


def _cases() -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return Cases(swish, samples=(Sample(x),), oracle=F.silu)


operator = Op("examples::swish", reference=_reference, backward=_backward, cases=_cases)

if __name__ == "__main__":
    if ON_GPU:
        x = torch.randn(1000, 1000, device="cuda")
        torch.testing.assert_close(swish(x), F.silu(x))
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
