"""Benchmark of optimized forecasters: size, speed, memory and accuracy on the same prices in one run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from torchcommodity.data import targets
from torchcommodity.forecast import diebold_mariano
from torchcommodity.losses import pinball
from torchcommodity.models import WindowNetwork, positive_prices
from torchcommodity.optimize._batches import BatchInputs, EveryRow, benchmark_inputs
from torchcommodity.optimize._model_size import ModelSize, model_size
from torchcommodity.optimize._pipeline import COMBINED, NO_NETWORK, ORIGINAL, Float32Forecaster, Variant
from torchcommodity.optimize._profile.measure import call_peak_bytes
from torchcommodity.optimize._speedup import Speedup, Times, speedup, time_interleaved
from torchcommodity.training import ModelInputs, one_thread, predict_rows

SIZE_GOAL, SPEED_GOAL = 4, 3  # factors by which the combined variant should be smaller and faster


@dataclass(frozen=True)
class BenchmarkRow:
    """Measurements of one variant; times in milliseconds; one forecast covers all symbols."""

    variant: str
    size: ModelSize
    p50: float  # latency at batch size 1
    p99: float
    batch_p50: float  # latency of the large batch
    batch_p99: float
    throughput: float  # forecasts per second in the large batch
    peak_bytes: int  # during a call with the large batch
    speedup: Speedup  # at batch size 1, against the original
    crps: tuple[float, ...]  # per horizon, on the test rows
    dm: tuple[float, ...]  # Diebold-Mariano statistic against the original; positive: the variant forecasts worse
    dm_p: tuple[float, ...]  # two-sided p-value; NaN for identical forecasts
    note: str

    @property
    def significantly_worse(self) -> bool:
        """Whether the loss is significantly higher than the original's at any horizon, at the 5 % level."""
        return any(t > 0 and p < 0.05 for t, p in zip(self.dm, self.dm_p))


@one_thread()
@torch.no_grad()
def benchmark_table(
    variants: Mapping[str, Variant],
    inputs: ModelInputs,
    start: int,
    *,
    rows: int = 512,
    batch_size: int = 256,
    calls: int = 100,
    batch_calls: int = 5,
) -> tuple[BenchmarkRow, ...]:
    """Measure every variant: size, speed, memory, and accuracy on the rows from `start` on.

    Args:
        variants: result of `pipeline`; the first is the original.
        inputs: all prices, including the test rows.
        start: first test row; no variant was fitted or selected on it or on later rows.
        rows: rows of prices per forecast.
        batch_size: forecasts in the large batch.
        calls: timed calls at batch size 1, interleaved over the variants.
        batch_calls: timed calls of the large batch.

    Returns:
        One row per variant, in the same order.

    Raises:
        ValueError: there are fewer than `rows` rows.
    """
    horizon = variants[ORIGINAL].forecaster.horizons[-1]
    single, batch = (benchmark_inputs(inputs, rows, size, horizon) for size in (1, batch_size))
    times = time_interleaved({name: _call(variant.module, single) for name, variant in variants.items()}, calls)
    # eager, because a compiled model would be recompiled for the large batch
    eager = {name: getattr(variant.module, "_orig_mod", variant.module) for name, variant in variants.items()}
    batch_times = time_interleaved({name: _call(module, batch) for name, module in eager.items()}, batch_calls)
    losses = {name: _losses(variant, inputs, start) for name, variant in variants.items()}
    table = []
    for name, variant in variants.items():
        differences = (losses[name] - losses[ORIGINAL]).nanmean(2).numpy()  # (T, H)
        tests = [diebold_mariano(differences[:, i], h) for i, h in enumerate(variant.forecaster.horizons)]
        table.append(
            BenchmarkRow(
                variant=name,
                size=model_size(variant.forecaster),
                p50=_percentile(times[name], 50),
                p99=_percentile(times[name], 99),
                batch_p50=_percentile(batch_times[name], 50),
                batch_p99=_percentile(batch_times[name], 99),
                throughput=batch_size / float(np.median(batch_times[name])),
                peak_bytes=call_peak_bytes(eager[name], batch),
                speedup=speedup(times[ORIGINAL], times[name]),
                crps=tuple(2 * loss.nanmean().item() for loss in losses[name].unbind(1)),
                dm=tuple(t for t, _ in tests),
                dm_p=tuple(p for _, p in tests),
                note=variant.note,
            )
        )
    return tuple(table)


def summarize_benchmark(table: Sequence[BenchmarkRow]) -> str:
    """Summarize in words how the combined variant meets the goals for bytes, speed and accuracy.

    Args:
        table: result of `benchmark_table`.
    """
    rows = {row.variant: row for row in table}
    original, combined, no_network = rows[ORIGINAL], rows[COMBINED], rows[NO_NETWORK]
    smaller, faster = original.size.bytes / combined.size.bytes, combined.speedup
    parts = [
        f"1/{smaller:.1f} of the bytes (goal 1/{SIZE_GOAL}: {'met' if smaller >= SIZE_GOAL else 'missed'})",
        f"{faster} at batch size 1 (goal {SPEED_GOAL}x: {'met' if faster.low >= SPEED_GOAL else 'missed'})",
        "a significant loss" if combined.significantly_worse else "no significant loss at any horizon",
    ]
    bound = original.p50 / no_network.p50
    return f"{COMBINED}: {'; '.join(parts)}. Without a network, the eager model is {bound:.1f}x faster."


def _losses(variant: Variant, inputs: ModelInputs, start: int) -> Tensor:  # (T - start, H, N)
    """Mean pinball loss over the levels, of the rows from `start` on."""
    model, forecaster = variant.forecaster.model.eval(), variant.forecaster
    if isinstance(variant.module, Float32Forecaster):
        inputs = inputs._replace(prices=inputs.prices.float())
    if model.lookback is None:
        quantiles = EveryRow(model)(*inputs.batch())[0, start:].double()
    else:
        quantiles = predict_rows(cast(WindowNetwork, model), inputs, start).double()
    target = targets(positive_prices(inputs.prices.double(), forecaster.scale), forecaster.horizons)[start:]
    levels = torch.tensor(forecaster.levels, dtype=torch.double)
    losses: Tensor = pinball(quantiles, target, levels, reduction="none").mean(-1)
    return losses


def _call(module: nn.Module, inputs: BatchInputs) -> Callable[[], object]:
    return lambda: module(*inputs)


def _percentile(times: Times, percent: float) -> float:
    """Percentile in milliseconds."""
    return 1e3 * float(np.percentile(times, percent))
