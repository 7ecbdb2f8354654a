"""All models on the device against the CPU: quantiles, gradients of the networks and one step of AdamW; autocast.

It needs torch and numpy only: the prices are read from the file of the embedded ones. Names of models as arguments.
"""

import copy
import gzip
import sys
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from gpu import DEVICE, REHEARSAL, ROOT, Table, exit_without_gpu
from torch import Tensor, nn

from torch_opkit._contract.compare import assert_close
from torchcommodity.models import MODELS, build_model, default_config

PRICES = ROOT / "torchcommodity" / "data" / "open_prices" / "energy_spot_daily.csv.gz"
SEQUENCES, ROWS, SYMBOLS = 4, 600, 5


def embedded_prices() -> Tensor:  # (B, T, N) float64
    """Overlapping windows of the symbols with the longest series, on the days that all of them have."""
    series: dict[str, dict[str, float]] = defaultdict(dict)
    for line in gzip.decompress(PRICES.read_bytes()).decode().splitlines()[1:]:
        day, symbol, price = line.split(",")
        series[symbol][day] = float(price)
    longest = sorted(series.values(), key=len)[-SYMBOLS:]
    days = sorted(set.intersection(*map(set, longest)))[-ROWS - 100 :]
    table = torch.from_numpy(np.array([[prices[day] for prices in longest] for day in days]))
    return torch.stack([table[k * 20 : k * 20 + ROWS] for k in range(SEQUENCES)])


def monthly_rolls() -> Tensor:  # (B, T + A, N) int64: a roll on every 21st row, of the months in turn
    rows = torch.arange(ROWS + 126)
    months = torch.where(rows % 21 == 20, rows // 21 % 12 + 1, 0)
    return months[None, :, None].expand(SEQUENCES, -1, SYMBOLS).contiguous()


def make_model(name: str) -> nn.Module:
    """A model whose network corrects: its last layer is initialized to zero."""
    model = build_model(default_config(name, "daily"), SYMBOLS, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network(model):
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator).to(parameter))
        model.har.shrink.fill_(0.5)  # type: ignore[operator, union-attr]
    return model


def network(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for name, parameter in model.named_parameters() if not name.startswith("har.")]


def quantiles_and_gradients(model: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    model.eval()
    quantiles = model(*inputs)
    if network(model):
        (100 * quantiles.nan_to_num(0.0)).square().sum().backward()
    return quantiles.detach().cpu(), [p.grad.cpu() for p in network(model) if p.grad is not None]


def compare(name: str, inputs: tuple[Tensor, ...]) -> str:
    """Networks compute in float32, in another order on a GPU."""
    model = make_model(name)
    moved = copy.deepcopy(model).to(DEVICE)
    expected, expected_gradients = quantiles_and_gradients(model, inputs)
    actual, actual_gradients = quantiles_and_gradients(moved, tuple(x.to(DEVICE) for x in inputs))
    assert torch.isfinite(expected).any(), "no quantile is finite"
    assert_close([actual], [expected], 1e-4, "quantiles")
    for x, y in zip(actual_gradients, expected_gradients):
        error = (x - y).norm() / y.norm().clamp(min=1e-8)
        assert error < 1e-2, f"gradient of shape {tuple(y.shape)}: relative error {error:.1e}"
    if parameters := network(moved):
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
        optimizer.step()
        assert all(parameter.isfinite().all() for parameter in parameters), "a parameter is not finite after a step"
    difference = (actual - expected).abs().nan_to_num(0.0).max().item()
    return f"pass, largest difference of a quantile {difference:.1e}, {len(actual_gradients)} gradients"


def autocast(name: str, inputs: tuple[Tensor, ...], dtype: torch.dtype) -> str:
    """A training step in mixed precision, with gradient scaling for float16."""
    model = make_model(name).to(DEVICE)
    moved, parameters = tuple(x.to(DEVICE) for x in inputs), network(model)
    if not parameters:
        return "skipped: no network"
    optimizer, scaler = torch.optim.AdamW(parameters), torch.amp.GradScaler(enabled=dtype == torch.float16)
    before = [parameter.detach().clone() for parameter in parameters]
    for _ in range(12):  # the scale halves until no gradient overflows
        optimizer.zero_grad()
        with torch.autocast(DEVICE.type, dtype):
            quantiles = model(*moved)
        scaler.scale((100 * quantiles.nan_to_num(0.0)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert all(parameter.isfinite().all() for parameter in parameters), "a parameter is not finite"
    assert any(not torch.equal(x, y) for x, y in zip(parameters, before)), "no parameter has changed"
    return f"pass, scale {scaler.get_scale():g}"


def main() -> None:
    exit_without_gpu()
    table, prices, rolls = Table("models", "model", "inputs", "result"), embedded_prices(), monthly_rolls()
    names = sys.argv[1:] or (["har-lstm"] if REHEARSAL else list(MODELS))
    for name in names:
        table.check(f"`{name}`", "spot prices", call=lambda n=name: compare(n, (prices,)))
        table.check(f"`{name}`", "prices and rolls", call=lambda n=name: compare(n, (prices, rolls)))
    for name in names if DEVICE.type == "cuda" else ():
        for dtype in (torch.bfloat16, torch.float16):
            table.check(f"`{name}`", f"autocast {dtype}", call=lambda n=name, d=dtype: autocast(n, (prices,), d))
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
