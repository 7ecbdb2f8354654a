"""Forecasts of every model at the origins of a task, and their scores."""

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from torchcommodity.data import QuantileTable, calendar_years, read_quantiles
from torchcommodity.forecast import PretrainedModel, backtest, statistical
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
    library, names = default_baselines(task.panel.frequency), [*functions, *tables, *extra]
    reserved = [HAR_GARCH, *library, *STATISTICAL]
    if clashes := [name for name in names if name in reserved or names.count(name) > 1]:
        raise ValueError(
            f"run: every model must have a name of its own, other than {', '.join(reserved)}; got {clashes[0]}"
        )
    forecasts = {}
    for name, source in tables.items():
        table = source if isinstance(source, QuantileTable) else read_quantiles(source, model=name)
        forecasts[name] = align_quantiles(table, task)
    for name, function in functions.items():
        forecasts[name] = call_function(function, task, _label_progress(progress, name))
    if unknown := [name for name in without if name not in STATISTICAL]:
        raise ValueError(f"run: without must be among {', '.join(STATISTICAL)}; got {unknown[0]!r}")
    available = [name for name in STATISTICAL if name not in without] if find_spec("statsforecast") else []
    if extra:
        har, years = FitConfig.for_frequency(task.panel.frequency).model.har, calendar_years(task.panel.dates)
        start, stop = np.searchsorted(years, (task.first_year, task.first_year + 1)).tolist()
        inputs = model_inputs(task.panel, har.horizons[-1]).before(stop)
        for name, baseline in extra.items():
            check_look_ahead(name, baseline, inputs, start, har)
    models = {**library, **{name: statistical(name, rows=task.rows) for name in available}, **extra}
    label = "models of the package"
    result = backtest(
        task.panel, first_year=task.first_year, baselines=models, progress=_label_progress(progress, label)
    )
    origins = torch.from_numpy(task.rows - (len(task.panel) - len(result.origins)))
    forecasts |= {name: quantiles[origins] for name, quantiles in result.quantiles.items()}
    missing = {name: "left out" if name in without else NOT_INSTALLED for name in STATISTICAL if name not in available}
    entries = [
        Entry(result.model, "default"),
        *(Entry(name, "reference" if name == REFERENCE else "baseline") for name in library),
        *(Entry(name, "baseline", missing.get(name, "")) for name in STATISTICAL),
        *(Entry(name, "function") for name in (*functions, *extra)),
        *(Entry(name, "file") for name in tables),
    ]
    return score_entries(task, tuple(entries), forecasts, result.model)


def _label_progress(progress: Progress | None, name: str) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total, description: progress(done, total, f"{name}, {description}")
