"""What an accessor costs against a raw pointer, on one thread. Prints a Markdown table.

python benchmarks/accessors.py
"""

import platform
from functools import partial
from itertools import product

import torch
from timing import in_turn

from torchcommodity import opkit

LOOPS = """
template <typename scalar_t>
scalar_t changed(scalar_t x, bool heavy) { return heavy ? std::exp(x) : x * x; }

template <bool heavy>
void by_pointer(const Tensor& x_, Tensor& y) {
  const Tensor x = contiguous(x_);
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = changed(from[i], heavy);
}

template <bool heavy>
void by_accessor(const Tensor& x, Tensor& y) {
  const auto from = accessor<float, 2>(x);
  auto to = accessor<float, 2>(y);
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) to[i][j] = changed(from[i][j], heavy);
  }
}

Tensor pointer(const Tensor& x, bool heavy) {
  Tensor y = new_empty(x, x.sizes());
  heavy ? by_pointer<true>(x, y) : by_pointer<false>(x, y);
  return y;
}

Tensor strided(const Tensor& x, bool heavy) {
  Tensor y = new_empty(x, x.sizes());
  heavy ? by_accessor<true>(x, y) : by_accessor<false>(x, y);
  return y;
}
"""


def main(rows: int = 250, columns: int = 1000, runs: int = 101) -> None:
    torch.set_num_threads(1)
    kernels = opkit.load_inline("accessors", LOOPS, functions=["pointer", "strided"])
    layouts = {"contiguous": torch.rand(rows, columns), "transposed": torch.rand(columns, rows).mT}
    print(f"| float32 ({rows}, {columns}) | pointer, ms | accessor, ms | ratio |\n|---|---:|---:|---:|")
    for (work, heavy), (layout, x) in product({"square": False, "exponential": True}.items(), layouts.items()):
        times = in_turn({name: partial(call, x, heavy) for name, call in vars(kernels).items()}, runs)
        pointer, strided = times["pointer"], times["strided"]
        print(f"| {work}, {layout} | {pointer:.2f} | {strided:.2f} | {strided / pointer:.1f}x |")
    print(f"\ntorch {torch.__version__}, {platform.machine()}, one thread; medians of {runs} runs, taken in turn.")


if __name__ == "__main__":
    main()
