"""Run random series programs on emulated CUDA kernels: `python programs.py emulated.so` prints those that differ."""

import os
import random
import sys

os.environ["TORCHCOMMODITY_NATIVE"] = "0"

import torch
from torch import Tensor

from torch_opkit._contract.compare import assert_close
from torchcommodity import ops
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.series_program import series_program
from torchcommodity.ops._series.series_program_backward import series_program_backward

assert not ops.NATIVE
COUNT = 20
UNARY = ["negate", "absolute", "sqrt", "exp", "log", "atan", "sin", "cos", "forward_fill", "change", "cumsum"]
UNARY += ["previous"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fill", "restrict", "skip"]
WINDOWS = ["lag", "window_sum", "window_mean", "weighted_sum", "highest", "lowest", "absolute_deviation"]
DISCRETE = ["floor", "ceil", "sign", "valid", "count", "row"]  # without gradient, as the next two
COMPARISONS = ["less", "less_equal", "equal"]
RANKS = ["since_highest", "since_lowest", "rank"]
LOOP = "feedback 0.5; subtract %{x} %{f}; multiply %{d} %4; add %{f} %{m}; window_sum %{d} 2; assign %{f} %{a}"


def random_program(seed: int) -> str:
    """Two panels and a parameter, random statements, a loop in every other program, up to three outputs."""
    choose = random.Random(seed)
    lines = ["panels 2", "input 0", "input 1", "input 2", f"constant {choose.uniform(0.1, 0.9)!r}", "constant 3.0"]
    values = [1, 2, 3]
    for step in range(10):
        x, y, z = choose.choices(values[-6:], k=3)
        if step == 5 and seed % 2:
            f = len(lines)
            lines += LOOP.format(x=x, f=f, d=f + 1, m=f + 2, a=f + 3).split("; ")
            values += [f + 3, f + 4]
            continue
        rows = choose.choice((1, 2, 3, 7))
        kinds = (
            f"{choose.choice(UNARY)} %{x}",
            f"{choose.choice(BINARY)} %{x} %{y}",
            f"{choose.choice(WINDOWS)} %{x} {rows}",
            choose.choice((f"where %{x} %{y} %{z}", f"true_range %{x} %{y} %{z}", f"window_products %{x} %{y} {rows}")),
            choose.choice((f"exponential %{x} %4 %5 %5 %4", f"recurrence %4 %{x} %{y}", f"smooth %{x} %4 %{y}")),
            f"{choose.choice(DISCRETE)} %{x}",
            f"{choose.choice(COMPARISONS)} %{x} %{y}",
            f"{choose.choice(RANKS)} %{x} {rows}",
        )
        lines.append(choose.choices(kinds, (4, 4, 6, 3, 3, 1, 1, 1))[0])
        values.append(len(lines) - 1)
    outputs = " ".join(f"%{i}" for i in choose.sample(values[-4:], choose.randint(1, 3)))
    return "; ".join([*lines, f"return float {outputs}"])


def random_inputs(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 1 + torch.rand(3, 2, 30, 3, dtype=torch.double, generator=generator)
    return [*x.masked_fill(torch.rand(x.shape, generator=generator) < 0.02, torch.nan)]


def check(program: str, inputs: list[Tensor], dtype: torch.dtype) -> None:
    tolerance = 1e-9 if dtype == torch.double else 1e-5
    x = [panel.to(dtype) for panel in inputs]
    leaves = [panel.clone().requires_grad_() for panel in x]
    expected = interpret(leaves, program)
    assert_close(series_program(*x, program=program), expected.detach(), tolerance, "values")
    missing = expected.isnan()
    grad = torch.linspace(-1, 1, missing.numel(), dtype=dtype).reshape(missing.shape)
    gradient = series_program_backward(grad, *x, program=program, wanted=[2, 0])
    zeros = [torch.zeros_like(panel) for panel in x]
    if expected.requires_grad:
        upstream, y = grad.where(~missing, 0), expected.where(~missing, 0)
        zeros = [*torch.autograd.grad(y, leaves, upstream, allow_unused=True, materialize_grads=True)]
    assert_close(gradient, torch.stack([zeros[2], zeros[0]], -3), tolerance, "gradients")


if __name__ == "__main__":
    torch.ops.load_library(sys.argv[1])
    for seed in range(COUNT):
        for dtype in (torch.double, torch.float):
            try:
                check(random_program(seed), random_inputs(seed), dtype)
            except AssertionError as error:
                sys.stdout.write(f"{dtype} {random_program(seed)}: {error}\n")
