"""Training of networks and a fit of many GARCH models on the device and on the CPU: results, times, equal bits."""

import time
from collections.abc import Callable, Sequence

import torch
from gpu import DEVICE, REHEARSAL, Table, exit_without_gpu, synchronize
from models import embedded_prices, make_model, network
from torch import Tensor

from torch_opkit._contract.compare import assert_bitwise_equal, assert_close
from torchcommodity import ops

SEQUENCES = 8 if REHEARSAL else 64
STEPS = 2 if REHEARSAL else 10
SERIES = 20 if REHEARSAL else 10_000
ROWS = 500 if REHEARSAL else 2500


def train(name: str, device: torch.device) -> list[Tensor]:
    """The parameters of the network after some steps of AdamW, without dropout."""
    prices = embedded_prices().repeat(SEQUENCES // 4, 1, 1).to(device)
    model = make_model(name).to(device).eval()
    optimizer = torch.optim.AdamW(network(model), lr=1e-4)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (100 * model(prices).nan_to_num(0.0)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in network(model)]


def fit(device: torch.device) -> list[Tensor]:
    """Parameters of GARCH models of simulated returns with clusters of volatility."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(ROWS, SERIES, dtype=torch.float64, generator=generator)
    variance = ops.ewm_mean(noise.roll(1, 0).square(), span=20, min_periods=0).nan_to_num(1.0)
    result = ops.garch_fit((0.01 * noise * variance.sqrt()).to(device))
    return [result.omega.cpu(), result.alpha.cpu(), result.beta.cpu()]


def seconds(call: Callable[[], list[Tensor]]) -> tuple[float, list[Tensor]]:
    """Of the second call: the first loads kernels."""
    call()
    synchronize()
    start = time.perf_counter()
    result = call()
    synchronize()
    return time.perf_counter() - start, result


def compare(task: Callable[[torch.device], list[Tensor]], tolerance: float) -> Sequence[str]:
    """Times, and `pass` if the results agree; two runs on the device must give equal bits."""
    here, result = seconds(lambda: task(DEVICE))
    assert_bitwise_equal(task(DEVICE), result, "the next run")
    start = time.perf_counter()
    expected = task(torch.device("cpu"))
    on_cpu = time.perf_counter() - start
    assert_close(result, expected, tolerance, "on the device and on the CPU")
    return f"{here:.2f}", f"{on_cpu:.2f}", f"{on_cpu / here:.1f}x", "pass"


def main() -> None:
    exit_without_gpu()
    torch.backends.cudnn.deterministic = True  # its other algorithms do not give the same bits twice
    table = Table("training", "task", "device, s", "CPU, s", "speedup", "result")
    tasks: dict[str, tuple[Callable[[torch.device], list[Tensor]], float]] = {
        f"`garch_fit`, ({ROWS}, {SERIES})": (fit, 1e-3),
    }
    for name in ("har-lstm", "har-tcn", "har-attention"):
        tasks[f"`{name}`, {STEPS} steps of {SEQUENCES} sequences"] = (lambda device, n=name: train(n, device), 1e-2)
    for task, (call, tolerance) in tasks.items():
        try:
            table.row(task, *compare(call, tolerance))
        except Exception as error:
            table.failed = True
            table.row(task, "", "", "", f"**FAIL** {type(error).__name__}: {str(error)[:300]}")
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
