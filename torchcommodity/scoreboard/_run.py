"""Forecasts of every model at the origins of a task, and their scores; the user's baselines must not look ahead."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import QuantileTable, calendar_years, read_quantiles
from torchcommodity.forecast import Backtest, PretrainedModel, backtest, statistical
from torchcommodity.forecast import baselines as default_baselines
from torchcommodity.models import HarConfig, scale_inputs
from torchcommodity.scoreboard._forecasts import ForecastFunction, align_quantiles, call_function
from torchcommodity.scoreboard._scoreboard import Entry, Scoreboard, score_entries
from torchcommodity.scoreboard._task import REFERENCE, Task
from torchcommodity.training import HAR_GARCH, Baseline, FitConfig, ModelInputs, Progress, model_inputs

STATISTICAL = ("autoarima", "autoets", "theta")
NOT_INSTALLED = "not installed: pip install 'torchcommodity[statsforecast]'"


def run(
    task: Task,
    *,
    functions: Mapping[str, ForecastFunction | PretrainedModel] | None = None,
    tables: Mapping[str, Any] | None = None,
    models: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    without: Collection[str] = (),
    device: str = "cpu",
    progress: Progress | None = None,
) -> Scoreboard:
    """Score forecasters on a task, beside the default model and the baselines of the package.

    The rows of the package are its default model, `forecast.baselines` (among them GARCH by `arch`) and, where it is
    installed, AutoARIMA, AutoETS and Theta of `statsforecast`; each is fitted on the years before a test year, with an
    embargo of one horizon. A forecast that a model does not make is scored as that of the reference, `har`; a model
    that misses more than 2 % of a horizon is not scored there.

    Args:
        task: of `load_track` or `make_task`.
        functions: forecasters or pretrained models by name, each called once per origin with the prices up to it; see
            `call_function`.
        tables: quantiles by name: a file, a frame or a `QuantileTable`; see `data.read_quantiles`.
        models: what `forecast.fit(model=...)` takes, by name: a network of your own, its import path or a name of
            `models.MODELS`, which is fitted and forecasts as the default model does.
        baselines: baselines of `training` by name, called once per test year with the prices up to its end, and checked
            for look-ahead on the first one.
        without: models of `statsforecast` to leave out; AutoARIMA takes half an hour of the monthly track.
        device: of the default model and `models`; baselines run on the CPU, functions where they like.
        progress: called as progress(done, total, description).

    Raises:
        ValueError: a name is taken, or an unknown one is left out; what `align_quantiles`, `call_function` and
            `check_look_ahead` raise.

    Example:
        >>> import torch
        >>> from torchcommodity import data, scoreboard
        >>> def constant_volatility(panel, horizons, levels):  # 2 % a day
        ...     deviation = 0.02 * torch.tensor(horizons).sqrt()
        ...     z = torch.special.ndtri(torch.tensor(levels))
        ...     return panel.values.plain()[-1][:, None] * (deviation[:, None, None] * z).exp()
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> board = run(scoreboard.make_task(wti, first_year=2016), functions={"constant": constant_volatility})
        >>> board.score("constant", 21).n
        47
    """
    functions, tables, models, extra = functions or {}, tables or {}, models or {}, baselines or {}
    library, names = default_baselines(task.panel.frequency), [*functions, *tables, *models, *extra]
    reserved = [HAR_GARCH, *library, *STATISTICAL]
    if clashes := [name for name in names if name in reserved or names.count(name) > 1]:
        raise ValueError(
            f"run: every model must have a name of its own, other than {', '.join(reserved)}; got {clashes[0]}"
        )
    forecasts = {}
    for name, source in tables.items():
        table = source if isinstance(source, QuantileTable) else read_quantiles(source, model=name, signed=task.signed)
        forecasts[name] = align_quantiles(table, task)
    for name, function in functions.items():
        forecasts[name] = call_function(function, task, _label_progress(progress, name))
    if unknown := [name for name in without if name not in STATISTICAL]:
        raise ValueError(f"run: without must be among {', '.join(STATISTICAL)}; got {unknown[0]!r}")
    available = [name for name in STATISTICAL if name not in without] if find_spec("statsforecast") else []
    if extra:
        har, years = FitConfig.for_frequency(task.panel.frequency).model.har, calendar_years(task.panel.dates)
        start, stop = np.searchsorted(years, (task.first_year, task.first_year + 1)).tolist()
        inputs = scale_inputs(model_inputs(task.panel, har.horizons[-1]).before(stop), task.scale)
        for name, baseline in extra.items():
            check_look_ahead(name, baseline, inputs, start, har)
    references = {**library, **{name: statistical(name, rows=task.rows) for name in available}, **extra}
    config = FitConfig.for_frequency(task.panel.frequency)
    config = replace(config, train=replace(config.train, device=device))

    def walk_forward(label: str, baselines: Mapping[str, Baseline], model: Any = None) -> Backtest:
        shown = _label_progress(progress, label)
        return backtest(
            task.panel, config, model=model, first_year=task.first_year, baselines=baselines, progress=shown
        )

    result = walk_forward("models of the package", references)
    origins = torch.from_numpy(task.rows - (len(task.panel) - len(result.origins)))
    forecasts |= {name: quantiles[origins] for name, quantiles in result.quantiles.items()}
    for name, model in models.items():
        own = walk_forward(name, {}, model)
        forecasts[name] = own.quantiles[own.model][origins]
    missing = {name: "left out" if name in without else NOT_INSTALLED for name in STATISTICAL if name not in available}
    entries = [
        Entry(result.model, "default"),
        *(Entry(name, "reference" if name == REFERENCE else "baseline") for name in library),
        *(Entry(name, "baseline", missing.get(name, "")) for name in STATISTICAL),
        *(Entry(name, "model") for name in models),
        *(Entry(name, "function") for name in (*functions, *extra)),
        *(Entry(name, "file") for name in tables),
    ]
    return score_entries(task, tuple(entries), forecasts, result.model)


def _label_progress(progress: Progress | None, name: str) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total, description: progress(done, total, f"{name}, {description}")


def check_look_ahead(name: str, baseline: Baseline, inputs: ModelInputs, start: int, config: HarConfig) -> None:
    """Change the prices and the curve after the middle of a test block, and compare the forecasts up to the middle.

    Args:
        name: of the model, for the error message.
        baseline: called twice.
        inputs: up to the last row of the block.
        start: first row of the block.
        config: settings of the forecasts.

    Raises:
        ValueError: a forecast depends on a later price.
    """
    middle = (start + len(inputs.prices)) // 2
    curve = None if inputs.curve is None else _change(inputs.curve, middle)
    variant = inputs._replace(prices=_change(inputs.prices, middle), curve=curve)
    before, after = (baseline(rows, start, config).quantiles[: middle + 1 - start] for rows in (inputs, variant))
    close = torch.isclose(before, after, rtol=1e-6, atol=1e-9, equal_nan=True).flatten(1).all(1)
    if not close.all():
        row = start + int((~close).nonzero()[0])
        raise ValueError(
            f"{name}: a forecast must not depend on later prices; got one from row {row} that changes with prices "
            f"after row {middle}"
        )


def _change(values: Tensor, row: int) -> Tensor:
    """The later rows backwards, at three times the price."""
    return torch.cat([values[: row + 1], 3 * values[row + 1 :].flip(0)])
