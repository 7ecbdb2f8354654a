"""Run recurrent layers of many sizes on emulated CUDA kernels: `python recurrent.py emulated.so` prints failures.

The samples of the contract are of one size. A GPU has kernels for several ranges of hidden sizes, whose blocks share
out the series.
"""

import os
import sys
from functools import partial

os.environ["TORCHCOMMODITY_NATIVE"] = "0"

import torch
from torch import Tensor

from torch_opkit._contract.compare import assert_close
from torchcommodity import ops
from torchcommodity.ops._recurrent import lltm, lstm

assert not ops.NATIVE
HIDDEN = [1, 3, 4, 13, 16, 17, 32, 50, 64, 65, 100, 128, 130]
LAYERS = {"lstm": (lstm.operator, 4), "lltm": (lltm.operator, 3)}


def random_layer(series: int, hidden: int, gates: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(series * hidden)
    random = partial(torch.randn, dtype=torch.double, generator=generator)
    input = random(series, 4, 3).masked_fill(torch.rand(series, 4, 1, generator=generator) < 0.2, torch.nan)
    states = [random(series, hidden) for _ in range(2)]
    shapes = (gates * hidden, 3), (gates * hidden, hidden), (gates * hidden,)
    return [input, *states, *(random(shape) / hidden**0.5 for shape in shapes)]


def run(name: str, tensors: list[Tensor]) -> list[Tensor]:
    """Outputs, gradients of all arguments, and tangents of the states."""
    leaves = [x.clone().requires_grad_() for x in tensors]
    h, c, gates = LAYERS[name][0](*leaves, True)
    loss = (h * torch.linspace(-1, 1, h.numel(), dtype=h.dtype).reshape(h.shape)).sum() + c.sin().sum()
    outputs = [h.detach(), c.detach(), gates.detach()]
    input, h0, c0, _, weight_hh, _ = tensors
    tangent = getattr(torch.ops.commodity, f"{name}_tangent")
    tangents = tangent(outputs[2].cos(), h0.sin(), c0.cos(), input, c0, weight_hh, *outputs[1:])
    return [*outputs, *torch.autograd.grad(loss, leaves), *tangents]


SAMPLES = [(name, series, hidden) for name in LAYERS for hidden in HIDDEN for series in (1, 5, 21)]

if __name__ == "__main__":
    layers = {sample: random_layer(*sample[1:], LAYERS[sample[0]][1]) for sample in SAMPLES}
    expected = {sample: run(sample[0], layers[sample]) for sample in SAMPLES}  # by the references
    torch.ops.load_library(sys.argv[1])
    for sample, tensors in layers.items():
        for dtype, tolerance in ((torch.double, 1e-9), (torch.float, 1e-4)):
            try:
                actual = run(sample[0], [x.to(dtype) for x in tensors])
                assert_close(actual, [x.to(dtype) for x in expected[sample]], tolerance, "outputs and derivatives")
            except AssertionError as error:
                sys.stdout.write(f"{sample} {dtype}: {error}\n")
