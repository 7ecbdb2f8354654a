"""Time of a kernel that uses accessors against one that uses raw pointers, on one thread.

python benchmarks/accessors.py --page opkit/docs/kernels/accessors.md
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path

import torch
from markdown import environment, format_table, replace_table
from timing import median_times

import torch_opkit as opkit

LOOPS = """
template <typename scalar_t>
scalar_t transform(scalar_t x, bool exponential) { return exponential ? std::exp(x) : x * x; }

template <bool exponential>
void by_pointer(const Tensor& x_, Tensor& y) {
  const Tensor x = contiguous(x_);
  const float* input = x.const_data_ptr<float>();
  float* output = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) output[i] = transform(input[i], exponential);
}

template <bool exponential>
void by_accessor(const Tensor& x, Tensor& y) {
  const auto input = accessor<float, 2>(x);
  auto output = accessor<float, 2>(y);
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) output[i][j] = transform(input[i][j], exponential);
  }
}

Tensor pointer(const Tensor& x, bool exponential) {
  Tensor y = new_empty(x, x.sizes());
  exponential ? by_pointer<true>(x, y) : by_pointer<false>(x, y);
  return y;
}

Tensor strided(const Tensor& x, bool exponential) {
  Tensor y = new_empty(x, x.sizes());
  exponential ? by_accessor<true>(x, y) : by_accessor<false>(x, y);
  return y;
}
"""


def main(rows: int = 250, columns: int = 1000, runs: int = 101) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Markdown page whose table `accessors` is replaced")
    page = parser.parse_args().page
    torch.set_num_threads(1)
    kernels = opkit.load_inline("accessors", LOOPS, functions=["pointer", "strided"])
    layouts = {"contiguous": torch.rand(rows, columns), "transposed": torch.rand(columns, rows).mT}
    table = []
    for (work, exponential), (layout, x) in product({"square": False, "exponential": True}.items(), layouts.items()):
        times = median_times({name: partial(call, x, exponential) for name, call in vars(kernels).items()}, runs)
        pointer, strided = times["pointer"], times["strided"]
        table.append([f"{work}, {layout}", f"{pointer:.2f}", f"{strided:.2f}", f"{strided / pointer:.1f}x"])
    heads = [f"float32 ({rows}, {columns})", "pointer, ms", "accessor, ms", "ratio"]
    note = environment(f"torch {torch.__version__}, one thread; medians of {runs} alternating runs")
    text = f"{format_table(heads, table)}\n\n{note}"
    replace_table(page, "accessors", text) if page else print(text)


if __name__ == "__main__":
    main()
