"""Forecasts row by row: the forecast from the last row of a panel, from what is kept of the rows before."""

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, Provenance, compare_with_training, to_panel
from torchcommodity.forecast._covariates import covariate_findings, forecaster_inputs
from torchcommodity.forecast._forecast import HISTORY_ROWS, Forecast
from torchcommodity.forecast._history import PriceRange, last_prices
from torchcommodity.opkit import MetadataTensor, Past, decode_text, encode_text
from torchcommodity.training import ModelInputs, VarianceSource, one_thread

if TYPE_CHECKING:
    from torchcommodity.forecast._forecaster import Forecaster

LiveState = dict[str, Tensor]
MODEL = "model."  # prefix of what the model keeps


@one_thread()
@torch.no_grad()
def start(forecaster: "Forecaster", prices: Any, covariates: VarianceSource | None = None) -> LiveState:
    """The state after the rows of `prices`; see `Forecaster.start`."""
    forecaster = forecaster.to("cpu")
    panel = forecaster.align_panel(to_panel(prices, operation="start"))
    past = Past({})
    if hasattr(forecaster.model, "update"):
        forecaster.model.eval().update(past, *forecaster_inputs("start", forecaster, panel, covariates).batch())
    return _state(forecaster, panel, panel.dates, PriceRange.of(panel.values.plain()), past)


@one_thread()
@torch.no_grad()
def step(
    forecaster: "Forecaster", state: LiveState, prices: Any, covariates: VarianceSource | None = None
) -> tuple[LiveState, Forecast]:
    """The state after more rows, and the forecast from the last of them; see `Forecaster.step`."""
    forecaster = forecaster.to("cpu")
    before = _panel(forecaster, state)
    panel = forecaster.align_panel(_append(before, to_panel(prices, operation="step").select(forecaster.symbols)))
    if len(panel) == len(before):
        raise ValueError("step: prices must have a row with a price; got none: skip rows without any")
    dates = np.concatenate([_dates(state["dates"]), panel.dates[len(before) :]])
    past = Past({name.removeprefix(MODEL): x for name, x in state.items() if name.startswith(MODEL)})
    price_range = PriceRange(*(state[name] for name in PriceRange._fields))
    price_range = price_range.join(PriceRange.of(panel.values.plain()[len(before) :]))
    try:
        price_range.check(panel.symbols, forecaster.model.har.config.warmup)
    except ValueError as error:
        raise ValueError(f"step: {error}") from None
    inputs = forecaster_inputs("step", forecaster, panel, covariates)
    log_returns = _forecast(forecaster, past, inputs, len(before))
    findings = (*compare_with_training(panel, forecaster.record.prices), *covariate_findings(covariates, panel))
    panel = replace(panel, findings=(*panel.findings, *findings))
    forecast = Forecast.from_log_returns(panel, forecaster.horizons, forecaster.levels, log_returns, dates)
    return _state(forecaster, panel, dates, price_range, past), forecast


def _forecast(forecaster: "Forecaster", past: Past, inputs: ModelInputs, first: int) -> Tensor:
    """Quantiles after the last row; the rows before the row `first` are in the past."""
    model = forecaster.model.eval()
    if not hasattr(model, "update"):
        quantiles: Tensor = model(*inputs.batch())[0]
        return quantiles
    new_rows: Tensor = model.update(past, *(None if x is None else x[:, first:] for x in inputs.batch()))[0]
    return new_rows


def _state(forecaster: "Forecaster", panel: Panel, dates: np.ndarray, price_range: PriceRange, past: Past) -> LiveState:
    header = {
        "operator": "Forecaster",
        "checksum": forecaster.checksum,
        "units": panel.units,
        "provenance": [asdict(record) for record in panel.provenance],
    }
    rows = _last_rows(panel) if hasattr(forecaster.model, "update") else panel
    state = {"operator": encode_text(json.dumps(header)), "dates": torch.from_numpy(dates.astype(np.int64))}
    state["values"] = rows.values.plain().clone()
    if rows.curve is not None:
        state["curve"] = rows.curve.plain().clone()
    if rows.deliveries is not None:
        state["deliveries"] = torch.from_numpy(rows.deliveries.astype(np.int64))
    return state | price_range._asdict() | {f"{MODEL}{name}": x for name, x in past.tensors.items()}


def _last_rows(panel: Panel) -> Panel:
    """The rows that a `Forecast` shows, and the last positive price of each symbol."""
    row, _ = last_prices(panel.values.plain())
    first = min(len(panel) - HISTORY_ROWS[panel.frequency], int(row.min()))
    return panel.between(panel.dates[max(first, 0)])


def _panel(forecaster: "Forecaster", state: Any) -> Panel:
    """The rows that a state keeps."""
    try:
        header = json.loads(decode_text(state["operator"]))
        is_live = header["operator"] == "Forecaster"
    except (AttributeError, KeyError, TypeError, ValueError):
        is_live = False
    if not is_live:
        raise ValueError("step: state must be the dict of tensors that Forecaster.start returned; got another object")
    if header["checksum"] != forecaster.checksum:
        checksums = f"{header['checksum'][:12]} for the forecaster {forecaster.checksum[:12]}"
        raise ValueError(f"step: state must be one of this forecaster; got {checksums}: start again from the history")
    deliveries = state["deliveries"].numpy().astype("datetime64[M]") if "deliveries" in state else None
    return Panel(
        MetadataTensor(state["values"]),
        _dates(state["dates"][-len(state["values"]) :]),
        forecaster.symbols,
        tuple(header["units"]),
        tuple(Provenance(**record) for record in header["provenance"]),
        forecaster.contracts,
        MetadataTensor(state["curve"]) if "curve" in state else None,
        deliveries=deliveries,
    )


def _append(before: Panel, new: Panel) -> Panel:
    """Both panels' rows; what `new` does not state is as before."""
    if new.dates[0] <= before.dates[-1]:
        raise ValueError(f"step: rows must be after {before.dates[-1]}, the last row; got {new.dates[0]}")
    for name in ("curve", "deliveries"):
        if (getattr(before, name) is None) != (getattr(new, name) is None):
            raise ValueError(
                f"step: prices must have {name} if, and only if, the history had; start again with the same"
            )
    curves = [panel.curve.plain() for panel in (before, new) if panel.curve is not None]
    deliveries = [panel.deliveries for panel in (before, new) if panel.deliveries is not None]
    return replace(
        new,
        values=MetadataTensor(torch.cat([before.values.plain(), new.values.plain()])),
        dates=np.concatenate([before.dates, new.dates]),
        curve=MetadataTensor(torch.cat(curves)) if curves else None,
        deliveries=np.concatenate(deliveries) if deliveries else None,
    )


def _dates(days: Tensor) -> np.ndarray:
    return days.numpy().astype("datetime64[D]")
