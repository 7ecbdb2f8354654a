"""Operators as PyTorch runs them on a GPU: streams, graphs, torch.compile, several devices, equal bits in two runs."""

from collections.abc import Callable
from typing import Any

import torch
from gpu import DEVICE, Table, exit_without_gpu, synchronize
from operators import cases_of, gradients, native_operators, on_gpu, resized
from torch import Tensor

from torch_opkit import Op
from torch_opkit._contract.case import Case
from torch_opkit._contract.compare import assert_bitwise_equal, assert_close
from torchcommodity import ops

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "rolling_mean": lambda x: ops.rolling_mean(x, 20),
    "rolling_var": lambda x: ops.rolling_var(x, 20),
    "rolling_correlation": lambda x: ops.rolling_correlation(x, 20),
    "ewm_mean": lambda x: ops.ewm_mean(x, span=20),
    "garch_variance": lambda x: ops.garch_variance(x - 1.5, omega=1e-6, alpha=0.08, beta=0.9),
    "linear_recurrence": lambda x: ops.linear_recurrence(x / 4, x),
    "technical_indicators": ops.technical_indicators,
}


def panel(dtype: torch.dtype = torch.float64, device: torch.device = DEVICE) -> Tensor:
    return 1 + torch.rand(4, 500, 10, dtype=dtype, generator=torch.Generator().manual_seed(0)).to(device)


def first(result: Any) -> Tensor:
    """The first output."""
    return result if isinstance(result, Tensor) else result[0]


def same_bits(op: Op) -> None:
    """Values and gradients of two runs; with a kernel that fills the device in between."""
    case: Case = on_gpu(resized(cases_of(op)[0], 32, 500, 10, torch.float32))
    results = []
    for _ in range(2):
        results.append((*case.call(), *gradients(case)))
        torch.rand(1 << 24, device=DEVICE).sort()
    assert_bitwise_equal(results[1], results[0], "the second run")


def on_side_stream(function: Callable[[Tensor], Any]) -> None:
    """The input is written on the stream, behind a long kernel: a launch on another stream would read it too early."""
    x, expected = torch.zeros(4, 500, 10, dtype=torch.float64, device=DEVICE), first(function(panel()))
    source = panel()
    synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(50_000_000)
        x.copy_(source)
        y = first(function(x))
    synchronize()
    assert_bitwise_equal([y], [expected], "on a side stream")


def in_graph(function: Callable[[Tensor], Any]) -> None:
    """Capture once, replay on other values."""
    x = panel()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = first(function(x))
    x.add_(0.25)
    graph.replay()
    synchronize()
    assert_bitwise_equal([y], [first(function(x))], "the replayed graph")


def compiled(function: Callable[[Tensor], Any]) -> None:
    x = panel().requires_grad_()
    expected = first(function(2 * x)) + 1
    actual = torch.compile(lambda x: first(function(2 * x)) + 1, fullgraph=True)(x)
    assert_close([actual], [expected], 1e-9, "values")
    gradient = [torch.autograd.grad(y.nan_to_num().square().sum(), x)[0] for y in (actual, expected)]
    assert_close(gradient[:1], gradient[1:], 1e-7, "gradient")


def on_other_device(function: Callable[[Tensor], Any]) -> str | None:
    """The tensors are on the last device, and the current device is the first."""
    if torch.cuda.device_count() < 2:
        return "skipped: one GPU"
    other = torch.device("cuda", torch.cuda.device_count() - 1)
    actual = first(function(panel(device=other)))
    assert actual.device == other, f"the output is on {actual.device}"
    assert torch.cuda.current_device() == 0, "the current device has changed"
    assert_bitwise_equal([actual.cpu()], [first(function(panel())).cpu()], "on the last device")
    return None


def in_half(function: Callable[[Tensor], Any]) -> None:
    """float16 and bfloat16 are computed in float32."""
    for dtype in (torch.float16, torch.bfloat16):
        x = panel().to(dtype)
        y = first(function(x))
        assert y.dtype == dtype, f"expected {dtype}; got {y.dtype}"
        # not bitwise: settings such as a rate of decay have the dtype of the input
        assert_close([y.float()], [first(function(x.float()))], 4 * torch.finfo(dtype).eps, str(dtype))


def main() -> None:
    exit_without_gpu()
    table = Table("modes", "operator", "mode", "result")
    modes = {"float16, bfloat16": in_half}
    if DEVICE.type == "cuda":
        modes |= {"side stream": on_side_stream, "CUDA graph": in_graph, "another device": on_other_device}
        modes |= {"torch.compile": compiled}  # last: it is the slowest, and needs Triton
    for mode, check in modes.items():
        for name, function in FUNCTIONS.items():
            table.check(f"`{name}`", mode, call=lambda check=check, function=function: check(function))
    for op in native_operators():
        table.check(f"`{op.name}`", "two runs, equal bits", call=lambda op=op: same_bits(op))
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
