"""A fitted forecaster and its file."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from torchcommodity.data import Panel, write_atomic
from torchcommodity.models import build_model, model_config, model_name
from torchcommodity.nn import to_int8
from torchcommodity.training import read_tensor_file, tensor_file_bytes

FORMAT = "torchcommodity.forecaster.3"


@dataclass(frozen=True)
class FitRecord:
    """What happened in a fit: which data, which epoch, for which horizons the network is used, and the mix."""

    seed: int
    first: str  # date of the first row
    through: str  # date of the last row
    rows: int
    epoch: int  # 0: the econometric baseline
    corrected: tuple[int, ...]  # horizons whose scale the network corrects
    validation: tuple[
        tuple[float, ...], ...
    ]  # [epoch][horizon]: held-back pinball loss against the baseline in percent
    note: str  # the same in words
    curve: bool = False  # whether the curve of nearby contracts was there to learn from


@dataclass(frozen=True)
class Forecaster:
    """A fitted model with the symbols whose prices it reads, in their order, and the record of its fit.

    `contracts` are their product codes, as `data.Panel` has them: the model expects their rolls. `sources` say where
    the prices came from that it learned from, as `Panel.sources` does, without the time.
    """

    model: Any  # of `models.MODELS`
    symbols: tuple[str, ...]
    record: FitRecord
    contracts: tuple[str | None, ...] = ()
    sources: tuple[dict[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "contracts", tuple(self.contracts) or (None,) * len(self.symbols))

    def reads(self, panel: Panel) -> Panel:
        """Its own symbols of a panel, in its order and as the contracts that it learned.

        Raises:
            ValueError: a symbol is unknown to the panel, or is another contract than the forecaster's.
        """
        return align_panel(panel, self.symbols, self.contracts)

    @property
    def horizons(self) -> tuple[int, ...]:
        horizons: tuple[int, ...] = self.model.har.config.horizons
        return horizons

    @property
    def levels(self) -> tuple[float, ...]:
        levels: tuple[float, ...] = self.model.har.config.levels
        return levels

    def save(self, path: str | Path) -> None:
        """Write one file, whole or not at all: safetensors with settings, symbols, record and a checksum."""
        write_atomic(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        config = self.model.config
        model = {"name": model_name(config), "config": asdict(config)}
        named = {"symbols": self.symbols, "contracts": self.contracts, "sources": self.sources}
        about = {**named, "model": model, "record": asdict(self.record)}
        return tensor_file_bytes(FORMAT, self.model.state_dict(), about)

    @classmethod
    def load(cls, path: str | Path) -> "Forecaster":
        """Read a file of `save`; the forecaster gives the same bits.

        Raises:
            ValueError: the file is damaged, cut short, or was not written by `Forecaster.save`.
        """
        state, about = read_tensor_file(path, FORMAT, "Forecaster")
        config = model_config(about["model"]["name"], about["model"]["config"])
        model = build_model(config, len(about["symbols"]))
        for name, x in state.items():
            if x.dtype == torch.int8:
                layer, _, weight = name.removesuffix(".original0").partition(".parametrizations.")
                to_int8(model.get_submodule(layer), weight)
        # assigned, not copied: a weight keeps the numbers that it was saved in
        model.load_state_dict(state, assign=True)
        record = about["record"] | {
            "corrected": tuple(about["record"]["corrected"]),
            "validation": tuple(map(tuple, about["record"]["validation"])),
        }
        symbols, contracts, sources = (tuple(about[key]) for key in ("symbols", "contracts", "sources"))
        return cls(model, symbols, FitRecord(**record), contracts, sources)


def align_panel(panel: Panel, symbols: Sequence[str], contracts: Sequence[str | None]) -> Panel:
    """These symbols of a panel, in this order, as the contracts that a forecaster of them learned.

    Raises:
        ValueError: a symbol is unknown to the panel, or is another contract there.
    """
    if unknown := [symbol for symbol in symbols if symbol not in panel.symbols]:
        raise ValueError(
            f"forecaster: the panel must hold every symbol of the forecaster; {', '.join(unknown)} not in "
            f"{', '.join(panel.symbols)}"
        )
    panel = panel.select(symbols)
    for symbol, here, learned in zip(panel.symbols, panel.contracts, contracts):
        if here is not None and here != learned:
            expected = "a spot price" if learned is None else f"contract {learned}"
            got = f"contract {here}"
            raise ValueError(f"forecaster: {symbol} must be {expected}, as the forecaster learned it; got {got}")
    return panel.with_contracts(dict(zip(panel.symbols, contracts)))
