"""Every step that makes a forecaster smaller or faster, measured on the same prices in the same run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster, diebold_mariano
from torchcommodity.losses import pinball
from torchcommodity.models import HarGarch, HarGarchConfig, HarLstm, HarOutput
from torchcommodity.optimize._compile import Inputs, compile
from torchcommodity.optimize._distill import distill
from torchcommodity.optimize._inputs import batch
from torchcommodity.optimize._latency import Gain, Times, gain, interleaved
from torchcommodity.optimize._profile import peak
from torchcommodity.optimize._prune import fine_tune, importance, prune_inputs, prune_rows, prune_units, prune_weights
from torchcommodity.optimize._quantize import mixed_precision, quantize
from torchcommodity.optimize._size import Size, size
from torchcommodity.training import ModelInputs, TrainConfig, one_thread, targets

ORIGINAL, FLOOR, ALL = "original", "floor: no network", "combination"
SMALLER, FASTER = 4, 3  # times, the goal
Progress = Callable[[int, int, str], None]


class Step(NamedTuple):
    """A forecaster and how it is called."""

    forecaster: Forecaster
    call: Any  # prices, rolls, curve -> quantiles of the last row
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One step of the table; latencies in milliseconds, forecasts of all symbols are one forecast."""

    step: str
    size: Size
    p50: float  # batch 1
    p99: float
    p50_large: float  # the large batch
    p99_large: float
    throughput: float  # forecasts a second in the large batch
    peak_bytes: int  # of a call of the large batch
    gain: Gain  # at batch 1, against the original
    crps: tuple[float, ...]  # by horizon, on the verdict rows
    dm: tuple[float, ...]  # Diebold-Mariano statistic against the original; above zero, the step forecasts worse
    dm_p: tuple[float, ...]  # NaN: the same forecasts
    note: str

    @property
    def loses(self) -> bool:
        """Significantly worse than the original at a horizon, at 5 %."""
        return any(t > 0 and p < 0.05 for t, p in zip(self.dm, self.dm_p))


class EveryRow(nn.Module):
    """The definition of a forecast: quantiles at every row, of which the last is taken; the eager original."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        market = self.model.har(prices, rolls, curve)
        quantiles: Tensor = self.model.har.quantiles(market, self.model.correction(market))
        return quantiles[:, -1]


class Float32(nn.Module):
    """A model that computes in float32 from the prices on."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        found: Tensor = self.model(prices.float(), rolls, curve)
        return found


def steps(
    forecaster: Forecaster,
    past: ModelInputs,
    inputs: Inputs,
    *,
    tune: TrainConfig | None = None,
    compiled: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Step]:
    """Every step by itself, and their combination: distill, cut rows, int8, compile.

    Args:
        forecaster: of a HarLstm, fitted on `past`.
        past: what may be learned from, up to the last row before the verdict.
        inputs: a request of batch 1, on which models are compiled.
        tune: of fine-tuning and distillation; the defaults of each if None.
        compiled: with the steps that compile, each of which takes a minute or two.
        seed: of fine-tuning and distillation.
        progress: called as progress(done, of, what).

    Raises:
        ValueError: the model is no HarLstm.
    """
    if not isinstance(forecaster.model, HarLstm):
        raise ValueError(f"optimize: expected a HarLstm; got {type(forecaster.model).__name__}, which has no network")
    found = importance(forecaster, past)
    makers: dict[str, Callable[[], Step]] = {
        ORIGINAL: lambda: Step(forecaster, EveryRow(forecaster.model)),
        "last row only": lambda: _eager(forecaster),
        "80 % of weights zero, tuned": lambda: _eager(fine_tune(prune_weights(forecaster, 0.8), past, tune, seed=seed)),
        "a quarter of the units, tuned": lambda: _eager(
            fine_tune(prune_units(forecaster, max(forecaster.model.config.hidden // 4, 1)), past, tune, seed=seed)
        ),
        "99 % of importance": lambda: _eager(prune_rows(prune_inputs(forecaster, found), found)),
        "distilled": lambda: _eager(distill(forecaster, past, config=tune, seed=seed)),
        "int8": lambda: _eager(quantize(forecaster)),
        "bfloat16 network": lambda: _eager(mixed_precision(forecaster)),
        "float32 prices": lambda: Step(forecaster, Float32(forecaster.model)),
    }
    if compiled:
        makers["compiled"] = lambda: _compiled(forecaster, inputs)
    made: dict[str, Step] = {}
    for done, (name, make) in enumerate(makers.items()):
        if progress is not None:
            progress(done, len(makers) + 1, name)
        made[name] = make()
    student = made["distilled"].forecaster
    small = quantize(prune_rows(student, importance(student, past)) if student.model.har.shrink.any() else student)
    made[ALL] = _compiled(small, inputs) if compiled else _eager(small)
    made[FLOOR] = _floor(forecaster)
    return made


@one_thread()
@torch.no_grad()
def table(
    made: Mapping[str, Step],
    quoted: ModelInputs,
    start: int,
    *,
    rows: int = 512,
    large: int = 256,
    calls: int = 100,
    large_calls: int = 5,
) -> tuple[Row, ...]:
    """Measure every step: size, speed, memory, and what it forecasts on the rows from `start` on.

    Args:
        made: of `steps`; the first is the original.
        quoted: all prices, those of the verdict years included.
        start: the first row of the verdict: nothing was fitted or chosen on it or later.
        rows: of prices in a request.
        large: forecasts in a large batch.
        calls: at batch 1, in turn; percentiles are of them.
        large_calls: in the large batch.

    Raises:
        ValueError: too few rows.
    """
    horizons = made[ORIGINAL].forecaster.horizons
    one, many = (batch(quoted, rows, size, horizons[-1]) for size in (1, large))
    small = interleaved({name: _call(step, one) for name, step in made.items()}, calls)
    # a compiled model would compile again for a shape that no request of batch 1 has: eager here
    big = interleaved({name: _call(_uncompiled(step), many) for name, step in made.items()}, large_calls)
    losses = {name: _losses(step, quoted, start) for name, step in made.items()}
    return tuple(
        _row(name, step, small, big[name], large, peak(_uncompiled(step).call, many), losses)
        for name, step in made.items()
    )


def verdict(found: tuple[Row, ...]) -> str:
    """The goal against what was measured, in words: bytes, speed at batch 1, loss."""
    by = {row.step: row for row in found}
    first, last, floor = by[ORIGINAL], by[ALL], by[FLOOR]
    smaller = first.size.bytes / last.size.bytes
    parts = [
        f"weights of 1/{smaller:.1f} the bytes (goal 1/{SMALLER}: {'met' if smaller >= SMALLER else 'missed'})",
        f"{last.gain} at batch 1 (goal {FASTER}x: {'met' if last.gain.low >= FASTER else 'missed'})",
        "a significant loss at a horizon" if last.loses else "no significant loss at any horizon",
    ]
    told = f"{ALL}: {'; '.join(parts)}"
    return f"{told}. The floor of eager mode, which has no network at all, is {first.p50 / floor.p50:.1f}x faster."


def _row(
    name: str,
    step: Step,
    small: Mapping[str, Times],
    big: Times,
    large: int,
    peak_bytes: int,
    losses: Mapping[str, Tensor],  # (T, H, N) each
) -> Row:
    horizons = step.forecaster.horizons
    differences = (losses[name] - losses[ORIGINAL]).nanmean(2).numpy()  # (T, H)
    tests = [diebold_mariano(differences[:, i], h) for i, h in enumerate(horizons)]
    return Row(
        step=name,
        size=size(step.forecaster),
        p50=_milliseconds(small[name], 50),
        p99=_milliseconds(small[name], 99),
        p50_large=_milliseconds(big, 50),
        p99_large=_milliseconds(big, 99),
        throughput=large / float(np.median(big)),
        peak_bytes=peak_bytes,
        gain=gain(small[ORIGINAL], small[name]),
        crps=tuple(2 * losses[name][:, i].nanmean().item() for i in range(len(horizons))),
        dm=tuple(t for t, _ in tests),
        dm_p=tuple(p for _, p in tests),
        note=step.note,
    )


def _losses(step: Step, quoted: ModelInputs, start: int) -> Tensor:  # (T - start, H, N)
    """Mean pinball loss over the levels, of the rows from `start` on."""
    model = step.forecaster.model.eval()
    single = isinstance(step.call, Float32)
    quoted = quoted._replace(prices=quoted.prices.float()) if single else quoted
    market = model.har(*quoted.batch())
    first = start - getattr(model.config, "rows", 0) if getattr(model.config, "rows", 0) else 0
    part = HarOutput(*(x[:, max(first, 0) :] for x in market))
    quantiles = model.har.quantiles(part, model.correction(part))[0, start - max(first, 0) :].double()
    ahead = targets(quoted.prices.double(), step.forecaster.horizons)[start:]
    levels = torch.tensor(step.forecaster.levels, dtype=torch.double)
    losses: Tensor = pinball(quantiles, ahead, levels, reduction="none").mean(-1)
    return losses


def _eager(forecaster: Forecaster) -> Step:
    return Step(forecaster, forecaster.model.eval())


def _compiled(forecaster: Forecaster, inputs: Inputs) -> Step:
    found = compile(forecaster.model, inputs)
    return Step(forecaster, found.model, str(found))


def _uncompiled(step: Step) -> Step:
    return step._replace(call=getattr(step.call, "_orig_mod", step.call))


def _floor(forecaster: Forecaster) -> Step:
    """The econometric part by itself: what no step on the network can go below in eager mode."""
    model = HarGarch(forecaster.model.har.assets, HarGarchConfig(forecaster.model.har.config))
    model.har.load_state_dict(forecaster.model.har.state_dict())
    return _eager(replace(forecaster, model=model))


def _call(step: Step, inputs: Inputs) -> Callable[[], Any]:
    return lambda: step.call(*inputs)


def _milliseconds(times: Times, percent: float) -> float:
    return 1e3 * float(np.percentile(times, percent))
