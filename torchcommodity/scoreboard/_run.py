"""Forecasts of every model at the origins of a task, and their scores."""

from collections.abc import Collection, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import QuantileTable, calendar_years, read_quantiles
from torchcommodity.forecast import Backtest, PretrainedModel, backtest, statistical
from torchcommodity.forecast import baselines as default_baselines
from torchcommodity.scoreboard._forecasts import ForecastFunction, align_quantiles, call_function
from torchcommodity.scoreboard._look_ahead import check_look_ahead
from torchcommodity.scoreboard._scoreboard import Entry, Scoreboard, score_entries
from torchcommodity.scoreboard._task import REFERENCE, Task
from torchcommodity.training import HAR_GARCH, Baseline, FitConfig, Progress, model_inputs

STATISTICAL = ("autoarima", "autoets", "theta")
NOT_INSTALLED = "not installed: pip install 'torchcommodity[statsforecast]'"


def run(
    task: Task,
    *,
    functions: Mapping[str, ForecastFunction | PretrainedModel] | None = None,
    tables: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    without: Collection[str] = (),
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
        baselines: baselines of `training` by name, called once per test year with the prices up to its end, and checked
            for look-ahead on the first one.
        without: models of `statsforecast` to leave out; AutoARIMA takes half an hour of the monthly track.
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
    functions, tables, extra = functions or {}, tables or {}, baselines or {}
    library = default_baselines(task.panel.frequency)
    _check_names([*functions, *tables, *extra], [HAR_GARCH, *library, *STATISTICAL])
    forecasts = {name: align_quantiles(_table(source, name), task) for name, source in tables.items()}
    for name, function in functions.items():
        forecasts[name] = call_function(function, task, _labeled(progress, name))
    available = _available(without)
    for name, baseline in extra.items():
        _check_baseline(name, baseline, task)
    models = {**library, **{name: statistical(name, rows=task.rows) for name in available}, **extra}
    result = backtest(
        task.panel, first_year=task.first_year, baselines=models, progress=_labeled(progress, "models of the package")
    )
    forecasts |= {name: _at_origins(result, name, task) for name in result.quantiles}
    entries = [
        Entry(result.model, "default"),
        *(Entry(name, "reference" if name == REFERENCE else "baseline") for name in library),
        *(Entry(name, "baseline", "" if name in available else _reason(name, without)) for name in STATISTICAL),
        *(Entry(name, "function") for name in (*functions, *extra)),
        *(Entry(name, "file") for name in tables),
    ]
    return score_entries(task, tuple(entries), forecasts, result.model)


def _available(without: Collection[str]) -> list[str]:
    if unknown := [name for name in without if name not in STATISTICAL]:
        raise ValueError(f"run: without must be among {', '.join(STATISTICAL)}; got {unknown[0]!r}")
    return [name for name in STATISTICAL if name not in without] if find_spec("statsforecast") else []


def _reason(name: str, without: Collection[str]) -> str:
    return "left out" if name in without else NOT_INSTALLED


def _table(source: Any, name: str) -> QuantileTable:
    return source if isinstance(source, QuantileTable) else read_quantiles(source, model=name)


def _at_origins(result: Backtest, name: str, task: Task) -> Tensor:
    """The rows of a backtest at the origins of the task."""
    return result.quantiles[name][torch.from_numpy(task.rows - (len(task.panel) - len(result.origins)))]


def _check_baseline(name: str, baseline: Baseline, task: Task) -> None:
    years = calendar_years(task.panel.dates)
    start, stop = np.searchsorted(years, (task.first_year, task.first_year + 1)).tolist()
    har = FitConfig.for_frequency(task.panel.frequency).model.har
    inputs = model_inputs(task.panel, har.horizons[-1]).before(stop)
    check_look_ahead(name, baseline, inputs, start, har)


def _check_names(names: list[str], known: list[str]) -> None:
    if clashes := [name for name in names if name in known or names.count(name) > 1]:
        raise ValueError(
            f"run: every model must have a name of its own, other than {', '.join(known)}; got {clashes[0]}"
        )


def _labeled(progress: Progress | None, name: str) -> Progress | None:
    return None if progress is None else partial(_report, progress, name)


def _report(progress: Progress, name: str, done: int, total: int, description: str) -> None:
    progress(done, total, f"{name}, {description}")
