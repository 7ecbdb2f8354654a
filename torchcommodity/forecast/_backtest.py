"""Walk-forward backtest: every year is forecast by models fitted on earlier rows only."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from torch_opkit.arguments import operation
from torchcommodity.data import (
    Horizon,
    add_curve,
    add_references,
    calendar_years,
    check_doubts,
    check_not_synthetic,
    price_forms,
    signed_findings,
    target_rows,
    targets,
    to_panel,
    walk_forward,
)
from torchcommodity.forecast._baselines import baselines as default_baselines
from torchcommodity.forecast._other_words import hint_keywords
from torchcommodity.forecast._score import Backtest
from torchcommodity.models import HarConfig, model_name, positive_prices
from torchcommodity.training import (
    LOCAL,
    Baseline,
    Executor,
    FitConfig,
    Fold,
    Progress,
    VarianceSource,
    add_extra_terms,
    check_config,
    check_history,
    check_past,
    covariate_variances,
    model_inputs,
    one_thread,
    price_scale,
    run_fold,
)

# number of last years tested, unless `first_year` is given: a year of months has one target of twelve months
TEST_YEARS = {"daily": 7, "weekly": 7, "monthly": 20}


@hint_keywords
@operation("backtest")
@one_thread()
def backtest(
    prices: Any,
    config: FitConfig | None = None,
    *,
    model: Any = None,
    horizons: Horizon | Iterable[Horizon] | None = None,
    levels: Iterable[float] | None = None,
    symmetry: float | None = None,
    covariates: VarianceSource | None = None,
    references: Any = None,
    curve: Any = None,
    curve_of: Mapping[str, str | None] | None = None,
    signed: Iterable[str] = (),
    first_year: int | None = None,
    refit_network: int = 2,
    seed: int = 0,
    baselines: Mapping[str, Baseline] | None = None,
    progress: Progress | None = None,
    executor: Executor = LOCAL,
    strict: bool | None = None,
) -> Backtest:
    """Forecast each calendar year from `first_year` on with models fitted on the rows before that year.

    The econometric part and the baselines are refitted every year, the network every `refit_network` years. A training
    target is used only if it ends before the first test row: an embargo of one horizon.

    Args:
        prices: raw prices, anything that `data.to_panel` takes.
        config: model and fit settings; the defaults for the frequency of the prices if None.
        model: a name of `models.MODELS` such as "har-lstm"; a `torch.nn.Module` on windows of prices, or what makes
            one, see `models.windowed`; a subclass of `models.HarNetwork`; or an import path `package.module:Name` of
            one of these. Default: that of `config`.
        horizons: numbers of rows, or texts such as "2w", "6m" and "1y"; see `data.horizon_rows`. Default: those of
            `config`.
        levels: quantile levels strictly between 0 and 1. Default: those of `config`.
        symmetry: share of the past drift removed from the quantiles, in [0, 1]; 0 keeps the drift, as an equity index
            needs. Default: that of `config`.
        covariates: as for `fit`. The model without them is one more row of the result, `training.WITHOUT_COVARIATES`.
        references: as for `fit`.
        curve: as for `fit`.
        curve_of: as for `fit`.
        signed: as for `fit`. Forecasts and outcomes of such a symbol are changes of asinh(P / S), with S from the rows
            before the first test year, whatever the S of each fit.
        first_year: first test year; by default the last seven years are tested, twenty of monthly prices, or fewer in a
            short panel.
        refit_network: years between trainings of the network.
        seed: random seed for initialization and shuffling of the network.
        baselines: models to compare with, by name; those of `forecast.baselines` if None. See `statistical` for more.
        progress: called as progress(done, total, description) after each fold.
        executor: runs the folds, see `training.make_executor`; the result does not depend on it.
        strict: as for `fit`.

    Returns:
        A Backtest; its `scores` compare the model with the baselines.

    Raises:
        TypeError: an argument has another type.
        ValueError: a symbol has no positive or only constant prices; there is no test row, or too few rows before the
            first one; `refit_network` is below 1; the panel is synthetic.

    Example:
        >>> from torchcommodity import data
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> backtest(wti, first_year=2016)
        Backtest(har-garch, WTI; 252 origins 2016-01-04 to 2016-12-30; horizons 5, 21, 63, 126; 6 models)
    """
    panel = add_curve(add_references(to_panel(prices), references), curve, curve_of).drop_empty_rows()
    check_not_synthetic(panel, panel.references)
    forms = price_forms(panel, signed)
    signed = tuple(form.symbol for form in forms if form.form == "asinh")
    panel = replace(panel, findings=signed_findings(panel.findings, forms))
    check_doubts(panel, strict)
    config = add_extra_terms(check_config(config, panel, horizons, levels, symmetry, model), covariates)
    if refit_network < 1:
        raise ValueError(f"backtest: refit_network must be at least 1; got {refit_network}")
    check_history(panel, config.model.har, allow_short=True, signed=signed)
    baselines = default_baselines(panel.frequency) if baselines is None else baselines
    blocks = _test_blocks(panel.dates, first_year, config.model.har)
    check_past(panel, config.model.har, rows=blocks[0].start, signed=signed)
    extra = covariate_variances(panel, config.model.har, covariates)
    har = config.model.har
    inputs = model_inputs(panel, har.horizons[-1], extra, har.references, har.bars)
    scale = price_scale(inputs.prices[: blocks[0].start], panel.symbols, signed)
    years = [(str(panel.dates[test.start])[:4], test) for test in blocks]
    folds = [
        Fold(inputs.before(part[-1][1].stop), dict(part), config, seed, baselines, scale)
        for part in (years[i : i + refit_network] for i in range(0, len(years), refit_network))
    ]
    results = []
    for result in executor.map(run_fold, folds):
        results.append(result)
        if progress is not None:
            done = min(len(results) * refit_network, len(years))
            progress(done, len(years), years[done - 1][0])
    predictions = {name: [result.predictions[name] for result in results] for name in results[0].predictions}
    rows = slice(blocks[0].start, len(panel))
    positive = positive_prices(inputs.prices, scale)
    ends = target_rows(positive, config.model.har.horizons).numpy()  # (T, H, N)
    return Backtest(
        model=model_name(config.model),
        origins=panel.dates[rows],
        symbols=panel.symbols,
        horizons=config.model.har.horizons,
        levels=config.model.har.levels,
        targets=targets(positive, config.model.har.horizons)[rows],
        target_dates=np.where(ends < 0, np.datetime64("NaT", "D"), panel.dates[ends])[rows],
        quantiles={name: torch.cat([p.quantiles for p in parts]) for name, parts in predictions.items()},
        variances={name: torch.cat([p.variance for p in parts]) for name, parts in predictions.items()},
        fits=tuple(result.fit_note for result in results),
        mix={year: mix for result in results for year, mix in result.mix.items()},
        scale=scale,
        prices=None if scale is None else inputs.prices[rows],
    )


def _test_blocks(dates: np.ndarray, first_year: int | None, config: HarConfig) -> list[range]:
    """Rows of each test year, with enough rows before the first one."""
    years, min_rows = calendar_years(dates), config.warmup + 2 * config.horizons[-1]
    if len(years) <= min_rows:
        raise ValueError(f"backtest: the panel must have more than {min_rows} rows; got {len(years)}")
    if first_year is not None and not isinstance(first_year, (int, np.integer)):
        raise TypeError(f"backtest: first_year must be an int; got {first_year!r}")
    if first_year is None:
        first_year = max(int(years[-1]) - TEST_YEARS[config.frequency] + 1, int(years[min_rows - 1]) + 1)
    before = int((years < first_year).sum())
    if before < min_rows or before == len(years):
        raise ValueError(
            f"backtest: first_year must be in {years[0]}..{years[-1]} with at least {min_rows} rows before it; "
            f"got first_year={first_year} with {before}"
        )
    return [block.test for block in walk_forward(dates, test_start=first_year, horizon=config.horizons[-1])]
