"""Record of a fit, and the file of a fitted forecaster."""

from dataclasses import asdict, dataclass

import torch

from torchcommodity.data import CovariateSpec, PriceStatistics
from torchcommodity.models import HarNetwork, build_model, model_config, model_name
from torchcommodity.nn import to_int8
from torchcommodity.training import parse_tensor_file, tensor_file_bytes

FORMAT = "torchcommodity.forecaster.5"

Contracts = tuple[str | None, ...]
Sources = tuple[dict[str, str], ...]


@dataclass(frozen=True)
class FitRecord:
    """Data, settings and outcome of a fit."""

    seed: int
    first: str  # date of the first row
    through: str  # date of the last row
    rows: int
    epoch: int  # 0: the econometric baseline
    corrected: tuple[int, ...]  # horizons whose scale the network corrects
    validation: tuple[tuple[float, ...], ...]  # per epoch and horizon: change of the pinball loss, percent
    note: str  # the outcome in words
    curve: bool = False  # whether the fit had futures with the curve of nearby contracts
    own_rolls: bool = False  # whether a series rolled on other days than the exchange's rule
    settings: str = ""  # the FitConfig as TOML, for `training.from_toml`
    prices: tuple[PriceStatistics, ...] = ()  # of each symbol; none in a file of an earlier version
    covariates: tuple[CovariateSpec, ...] = ()  # columns of the `Covariates` of the fit


def forecaster_bytes(
    model: HarNetwork, symbols: tuple[str, ...], record: FitRecord, contracts: Contracts, sources: Sources
) -> bytes:
    """Content of the file."""
    metadata = {
        "symbols": symbols,
        "contracts": contracts,
        "sources": sources,
        "model": {"name": model_name(model.config), "config": asdict(model.config)},
        "record": asdict(record),
    }
    return tensor_file_bytes(FORMAT, model.state_dict(), metadata)


def parse_forecaster(content: bytes, label: str) -> tuple[HarNetwork, tuple[str, ...], FitRecord, Contracts, Sources]:
    """Arguments of a `Forecaster` from the content of its file.

    Raises:
        ValueError: damaged or other content.
    """
    state, metadata = parse_tensor_file(content, FORMAT, "Forecaster", label)
    config = model_config(metadata["model"]["name"], metadata["model"]["config"])
    model = build_model(config, len(metadata["symbols"]))
    for name, x in state.items():
        if x.dtype == torch.int8:
            layer, _, weight = name.removesuffix(".original0").rpartition(".parametrizations.")
            to_int8(model.get_submodule(layer), weight)
    # assigned, not copied, so that weights keep their dtype
    model.load_state_dict(state, assign=True)
    record = metadata["record"]
    record |= {
        "corrected": tuple(record["corrected"]),
        "validation": tuple(map(tuple, record["validation"])),
        "prices": tuple(PriceStatistics(**statistics) for statistics in record.get("prices", ())),
        "covariates": tuple(CovariateSpec(*spec) for spec in record.get("covariates", ())),
    }
    symbols, contracts, sources = (tuple(metadata[key]) for key in ("symbols", "contracts", "sources"))
    return model, symbols, FitRecord(**record), contracts, sources
