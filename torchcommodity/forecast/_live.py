"""What a forecaster keeps between forecasts row by row, as a dict of tensors."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import MetadataTensor, Past, decode_text, encode_text
from torchcommodity.data import Panel, Provenance
from torchcommodity.forecast._forecast import HISTORY_ROWS
from torchcommodity.forecast._history import PriceRange, last_prices, make_references
from torchcommodity.training import panel_bars

LiveState = dict[str, Tensor]
MODEL = "model."  # prefix of what the model keeps


class LivePast(NamedTuple):
    """The rows so far: the last ones, and what is kept of the others."""

    panel: Panel
    dates: np.ndarray  # (T,) of all rows
    price_range: PriceRange  # of all rows
    past: Past  # of the model


def pack_state(live: LivePast, checksum: str, scale: Tensor | None, *, all_rows: bool) -> LiveState:
    """Convert to tensors; without `all_rows`, only the rows of the panel that a `Forecast` needs."""
    panel = live.panel
    header = {
        "operator": "Forecaster",
        "checksum": checksum,
        "units": panel.units,
        "provenance": [asdict(record) for record in panel.provenance],
    }
    state = {"operator": encode_text(json.dumps(header)), "dates": torch.from_numpy(live.dates.astype(np.int64))}
    if not all_rows:  # the rows of its chart, and the last positive price of each symbol
        row, _ = last_prices(panel.values.plain(), scale)
        first = min(len(panel) - HISTORY_ROWS[panel.frequency], int(row.min()))
        panel = panel.between(panel.dates[max(first, 0)])
    state["values"] = panel.values.plain().clone()
    if panel.curve is not None:
        state["curve"] = panel.curve.plain().clone()
    if panel.bars is not None:
        state["bars"] = panel.bars.plain().clone()
    if panel.references is not None:
        state["references"] = panel.references.values.plain().clone()
    if panel.deliveries is not None:
        state["deliveries"] = torch.from_numpy(panel.deliveries.astype(np.int64))
    return state | live.price_range._asdict() | {f"{MODEL}{name}": x for name, x in live.past.tensors.items()}


def unpack_state(
    state: Mapping[str, Tensor],
    checksum: str,
    symbols: tuple[str, ...],
    contracts: tuple[str | None, ...],
    references: tuple[str, ...],
    curve_of: tuple[str | None, ...],
) -> LivePast:
    """Convert back.

    Raises:
        ValueError: the state is no result of `pack_state`, or that of another forecaster.
    """
    try:
        header = json.loads(decode_text(state["operator"]))
        is_live = header["operator"] == "Forecaster"
    except (AttributeError, KeyError, TypeError, ValueError):
        is_live = False
    if not is_live:
        raise ValueError("step: state must be the dict of tensors that Forecaster.start returned; got another object")
    if header["checksum"] != checksum:
        checksums = f"{header['checksum'][:12]} for the forecaster {checksum[:12]}"
        raise ValueError(f"step: state must be one of this forecaster; got {checksums}: start again from the history")
    dates = state["dates"].numpy().astype("datetime64[D]")
    panel = Panel(
        MetadataTensor(state["values"]),
        dates[-len(state["values"]) :],
        symbols,
        tuple(header["units"]),
        tuple(Provenance(**record) for record in header["provenance"]),
        contracts,
        MetadataTensor(state["curve"]) if "curve" in state else None,
        deliveries=state["deliveries"].numpy().astype("datetime64[M]") if "deliveries" in state else None,
        curve_of=curve_of,
    )
    if "bars" in state:
        panel = replace(panel, bars=MetadataTensor(state["bars"]))
    if references:
        panel = replace(panel, references=make_references(state["references"], panel.dates, references))
    price_range = PriceRange(*(state[name] for name in PriceRange._fields))
    past = Past({name.removeprefix(MODEL): x for name, x in state.items() if name.startswith(MODEL)})
    return LivePast(panel, dates, price_range, past)


def append_rows(before: Panel, new: Panel) -> Panel:
    """Both panels' rows; what `new` does not state is as before."""
    if new.dates[0] <= before.dates[-1]:
        raise ValueError(f"step: rows must be after {before.dates[-1]}, the last row; got {new.dates[0]}")
    for name in ("curve", "deliveries"):
        if (getattr(before, name) is None) != (getattr(new, name) is None):
            raise ValueError(
                f"step: prices must have {name} if, and only if, the history had; start again with the same"
            )
    curves = [panel.curve.plain() for panel in (before, new) if panel.curve is not None]
    most = max((curve.shape[2] for curve in curves), default=0)  # contracts
    curves = [pad(curve, (0, most - curve.shape[2]), value=torch.nan) for curve in curves]
    deliveries = [panel.deliveries for panel in (before, new) if panel.deliveries is not None]
    references = [panel.references.values.plain() for panel in (before, new) if panel.references is not None]
    has_bars = before.bars is not None or new.bars is not None
    dates = np.concatenate([before.dates, new.dates])
    return replace(
        new,
        values=MetadataTensor(torch.cat([before.values.plain(), new.values.plain()])),
        dates=dates,
        curve=MetadataTensor(torch.cat(curves)) if curves else None,
        deliveries=np.concatenate(deliveries) if deliveries else None,
        bars=MetadataTensor(torch.cat([panel_bars(panel) for panel in (before, new)])) if has_bars else None,
        references=make_references(torch.cat(references), dates, new.references.symbols)
        if new.references is not None
        else None,
    )
