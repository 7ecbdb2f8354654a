"""Fit a forecaster, and predict: calibrate the econometric part, and train the network that corrects its scale."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torch_opkit.arguments import operation
from torchcommodity.data import (
    Covariates,
    Horizon,
    Panel,
    PriceForm,
    add_curve,
    add_references,
    check_doubts,
    check_not_synthetic,
    equity_indices,
    price_forms,
    price_statistics,
    signed_findings,
    summarize_names,
    to_panel,
)
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._forecaster import Forecaster
from torchcommodity.forecast._forecaster_file import FitRecord
from torchcommodity.forecast._other_words import hint_keywords
from torchcommodity.models import HarNetwork, build_model
from torchcommodity.training import (
    FitConfig,
    Progress,
    RunOptions,
    VarianceSource,
    add_extra_terms,
    calibrate_model,
    check_config,
    check_history,
    check_no_look_ahead,
    check_past,
    covariate_variances,
    model_inputs,
    network_parameters,
    one_thread,
    price_scale,
    resolve_device,
    to_toml,
    train,
)


@hint_keywords
@operation("fit")
@one_thread()
def fit(
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
    seed: int = 0,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 60.0,
    tensorboard: Path | None = None,
    through: str | np.datetime64 | None = None,
    strict: bool | None = None,
) -> Forecaster:
    """Fit a forecaster on real prices.

    Args:
        prices: raw prices, anything that `data.to_panel` takes. Missing, zero and negative prices are skipped: the next
            return spans the gap. But a symbol with two or more negative prices, such as a spread, is forecast as
            asinh(P / S) in place of ln P, where prices of any sign count; see `data.price_forms`.
        config: model and fit settings; the defaults for the frequency of the prices if None.
        model: a name of `models.MODELS` such as "har-lstm"; a `torch.nn.Module` on windows of prices, or what makes
            one, see `models.windowed`; a subclass of `models.HarNetwork`; or an import path `package.module:Name` of
            one of these. Default: that of `config`.
        horizons: numbers of rows, or texts such as "2w", "6m" and "1y"; see `data.horizon_rows`. Default: those of
            `config`.
        levels: quantile levels strictly between 0 and 1. Default: those of `config`.
        symmetry: share of the past drift removed from the quantiles, in [0, 1]; 0 keeps the drift, as an equity index
            needs. Default: that of `config`.
        covariates: `data.Covariates`, each column of which adds a term to the variance, from what was published by each
            row; or an object with the same `terms`, `ratios` and `variances`, see `training.VarianceSource`.
        references: prices that help to forecast the others and are not forecast, see `data.add_references`: names of
            symbols of `prices`, other prices, or "embedded". A panel may have its own, as `data.embedded()` has.
        curve: closes of nearby contracts, anything that `data.add_curve` takes. Of front-month futures they give the
            gaps of the coming rolls; of spot prices they tell where the price goes. A panel may have its own.
        curve_of: product codes of the spot prices whose curve it is, such as {"HEATING_OIL_NYH": "HO"}; see
            `Panel.with_curve`.
        signed: further symbols whose prices may be zero or negative, whatever they were so far.
        seed: random seed for initialization and shuffling; the same seed gives the same bits on the CPU.
        progress: called as progress(done, total, description) while the network is trained.
        checkpoint: checkpoint file of the training. The same call resumes an interrupted training, with the same bits
            as an uninterrupted one. The file is deleted at the end.
        checkpoint_seconds: seconds between checkpoints.
        tensorboard: folder for loss curves.
        through: last date used; all rows if None.
        strict: whether prices of unstated origin, or with findings that were not accepted, are an error; otherwise they
            are a `data.DataWarning`. Default: if the environment variable TORCHCOMMODITY_STRICT is 1.

    Returns:
        A Forecaster. Its record has the selected epoch and the horizons that the network corrects; if no epoch beats
        the econometric baseline on the validation rows, the baseline is kept.

    Raises:
        TypeError: `prices` or `config` has another type.
        ValueError: a symbol has no positive, only constant or too few prices, see `training.usable_symbols`; `signed`
            names a symbol that the prices lack, or one with the futures curve of a product; the device
            of the config is not on this machine; the checkpoint is damaged or belongs to another run; the panel is
            synthetic; the settings are for prices of another frequency; an invalid horizon or level; the covariates
            have no value for the rows.

    Example:
        >>> from torchcommodity import data
        >>> fit(data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"))
        Forecaster(har-garch, WTI; fitted 2012-01-03 to 2018-12-28, 1,759 rows; horizons 5, 21, 63, 126)
    """
    panel = add_curve(add_references(to_panel(prices), references), curve, curve_of).drop_empty_rows()
    check_not_synthetic(panel, panel.references)
    panel = panel if through is None else panel.between(None, through)
    forms = price_forms(panel, signed)
    signed = tuple(form.symbol for form in forms if form.form == "asinh")
    panel = replace(panel, findings=signed_findings(panel.findings, forms))
    check_doubts(panel, strict)
    config = add_extra_terms(check_config(config, panel, horizons, levels, symmetry, model), covariates)
    resolve_device(config.train.device)  # also for a model without a network, which trains nothing
    check_history(panel, config.model.har, signed=signed)
    check_past(panel, config.model.har, rows=len(panel), signed=signed)
    extra = covariate_variances(panel, config.model.har, covariates)
    har = config.model.har
    inputs = model_inputs(panel, har.horizons[-1], extra, har.references, har.bars)
    network = build_model(config.model, len(panel.symbols), seed)
    network.har.set_price_scale(price_scale(inputs.prices, panel.symbols, signed))
    options = RunOptions(progress, checkpoint, checkpoint_seconds, tensorboard)
    result = train(network, inputs, config.train, config.symmetry, seed, options)
    calibrate_model(network, inputs, config.symmetry, config.train)
    check_no_look_ahead(network, inputs)
    record = FitRecord(
        seed=seed,
        first=str(panel.dates[0]),
        through=str(panel.dates[-1]),
        rows=len(panel),
        epoch=result.epoch,
        corrected=result.corrected,
        validation=result.validation,
        note="; ".join(
            _notes(panel, forms, network, config, covariates, result.note if network_parameters(network) else None)
        ),
        curve=inputs.curve is not None and not all(panel.spot),
        own_rolls=panel.has_own_rolls,
        settings=to_toml(config),
        prices=price_statistics(panel, signed),
        covariates=covariates.specs if isinstance(covariates, Covariates) else (),
    )
    # without the time of retrieval, so that the same prices give the same file; the sha256 identifies them
    sources = tuple({k: v for k, v in source.items() if k != "retrieved"} for source in panel.sources())
    return Forecaster(network, panel.symbols, record, panel.contracts, sources)


def _notes(
    panel: Panel,
    forms: Iterable[PriceForm],
    model: HarNetwork,
    config: FitConfig,
    covariates: VarianceSource | None,
    training: str | None,
) -> Iterator[str]:
    count = f"{len(panel.symbols)} symbol{'s' * (len(panel.symbols) > 1)}"
    note = f"Fitted {config.model.title} on {count}, {panel.dates[0]} to {panel.dates[-1]}"
    yield note if covariates is None else f"{note}, with {summarize_names(covariates.terms)}"
    if signed := [f"{form.symbol} ({form.reason})" for form in forms if form.form == "asinh"]:
        yield f"asinh(P / S) in place of ln P for {summarize_names(signed)}"
    har = model.har
    if references := har.config.references:
        location, N = har.location, len(panel.symbols)
        pairs = None if location is None else location.pairs
        used = [] if pairs is None else sorted({int(j) - N for j in pairs[:, 1] if j >= N})
        names = f": {summarize_names([references[j] for j in used])}" if used else ""
        yield f"{len(used)} of {len(references)} references related{names}"
    if any(panel.curve_of):
        products = [f"{symbol} {code}" for symbol, code in zip(panel.symbols, panel.curve_of) if code]
        yield f"Futures curve of {summarize_names(products)}"
    if har.config.bars:
        own = [symbol for symbol, has in zip(panel.symbols, har.has_ranges.tolist()) if has]
        yield f"variances from open, high and low of {summarize_names(own) or 'no symbol: too few usable ranges'}"
    if training is not None:
        yield training
    if config.symmetry and (indices := equity_indices(panel.symbols)):
        removed = f"{100 * config.symmetry:.0f} % of the past drift is removed"
        yield f"{removed}, which costs accuracy on equity indices such as {indices[0]}: symmetry=0 keeps it"


@hint_keywords
def predict(
    forecaster: Forecaster,
    prices: Any,
    covariates: VarianceSource | None = None,
    references: Any = None,
    curve: Any = None,
) -> Forecast:
    """Forecast from the last row of `prices`. The model is not refitted; its variances use every row.

    It computes on the device of the forecaster, see `Forecaster.to`; the forecast is on the CPU.

    Args:
        forecaster: from `fit` or `Forecaster.load`.
        prices: raw prices, anything that `data.to_panel` takes, with at least the forecaster's symbols, or the legs of
            its spreads, in any order. Symbols without a contract take that of the forecaster.
        covariates: those of the fit, with their values up to now, if it had any. A covariate whose last value is too
            old gives no information, which is a finding of the forecast.
        references: prices of the forecaster's references, as for `fit`, unless `prices` has them. One without a recent
            price adds nothing to the forecast, which is a finding too.
        curve: closes of nearby contracts, anything that `data.add_curve` takes, unless `prices` has them. The products
            are those of the fit. Of a spot price without a curve of the last three rows the forecast rests on related
            prices and the season, which is a finding too.

    Raises:
        TypeError: an argument has another type.
        ValueError: a symbol of the forecaster is missing, has another contract, or too few positive prices for the
            warm-up; a date is still to come, see `data.latest_date`; the covariates are not those of the fit.

    Example:
        >>> from torchcommodity import data, forecast
        >>> forecaster = forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2017-12-31"))
        >>> predict(forecaster, data.embedded().between(None, "2019-01-03"))
        Forecast(WTI; from 2019-01-03; horizons 5, 21, 63, 126; 19 levels)
    """
    if not isinstance(forecaster, Forecaster):
        raise TypeError(f"predict: forecaster must be a Forecaster; got {type(forecaster).__name__}")
    return forecaster.predict(prices, covariates, references, curve)
