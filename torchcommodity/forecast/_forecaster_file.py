"""Record of a fit, and the file of a fitted forecaster."""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from torchcommodity.data import (
    CONTRACTS,
    CovariateSpec,
    PriceStatistics,
    symbol_problem,
    text_problem,
    unit_problem,
)
from torchcommodity.models import (
    HarConfig,
    HarNetwork,
    ModelConfig,
    Windowed,
    build_model,
    check_fields,
    import_network,
    model_name,
    to_model_config,
)
from torchcommodity.nn import to_int8
from torchcommodity.training import parse_tensor_file, parse_toml, tensor_file_bytes

FORMAT = "torchcommodity.forecaster.5"
MAX_REASON = 300  # characters of an error
NETWORKS = "TORCHCOMMODITY_NETWORKS"  # environment variable: import paths, modules or packages that a file may name
PAIRS, COEFFICIENTS, ROWS = (f"location.{name}" for name in ("pairs", "coefficients", "rows"))  # in the state of `Har`
SCALE = "scale"  # likewise
FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
MAX_ROWS = 25_000  # a century of trading days: of a horizon, a half-life, a trend and the warm-up
SPARE_NUMBERS = 10**6  # of tensors that a model makes beside its weights

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
        "model": {"name": model_name(model.config), "config": model.config.to_dict()},
        "record": asdict(record),
    }
    return tensor_file_bytes(FORMAT, model.state_dict(), metadata)


def parse_forecaster(
    content: bytes, label: str, model: Any = None
) -> tuple[HarNetwork, tuple[str, ...], FitRecord, Contracts, Sources]:
    """Arguments of a `Forecaster` from the content of its file; `model` makes the user's network, if it has one.

    Raises:
        ValueError: damaged or other content.
    """
    state, metadata = parse_tensor_file(content, FORMAT, "Forecaster", label)
    try:
        symbols, contracts, sources = (tuple(metadata[key]) for key in ("symbols", "contracts", "sources"))
        check_names(symbols, contracts, sources)
        config = _config(metadata["model"]["name"], metadata["model"]["config"], model)
        check_settings(config.har, symbols)
        with _MemoryLimit(4 * sum(x.numel() for x in state.values()) + SPARE_NUMBERS):
            network = build_model(config, len(symbols))
        for name, x in state.items():
            if x.dtype == torch.int8:
                layer, _, weight = name.removesuffix(".original0").rpartition(".parametrizations.")
                to_int8(network.get_submodule(layer), weight)
        network.har.set_price_scale(state.get(f"har.{SCALE}"))
        _check_types(state, network.state_dict())
        check_weights(state)
        if f"har.{PAIRS}" in state:
            check_pairs({name.removeprefix("har."): x for name, x in state.items()}, len(symbols), config.har)
        # assigned, not copied, so that weights keep their dtype
        network.load_state_dict(state, assign=True)
        record = _parse_record(metadata["record"], len(symbols), signed_columns(state.get(f"har.{SCALE}")))
        return network, symbols, record, contracts, sources
    except Exception as error:  # a file may hold anything
        reason = str(error).strip().partition("\n")[0][:MAX_REASON] or type(error).__name__
        raise ValueError(f"Forecaster.load: {label} must be a file written by Forecaster.save; got {reason}") from error


def _config(name: str, values: dict[str, Any], model: Any) -> ModelConfig:
    """Settings of a model; of a network of the user's with what makes it, which no file can choose by itself."""
    allowed = set(os.environ.get(NETWORKS, "").split(",")) - {""}  # no variable allows nothing, not the name ""
    if ":" in name and model is None and name not in allowed:
        module = name.partition(":")[0]
        remedy = f"pass model= or --model, the class or function that made it, or set {NETWORKS}={name}"
        if not {module, module.partition(".")[0]} & allowed:
            raise ValueError(
                f"weights of a network that the package does not have, {name}: {remedy}, and it is imported"
            )
        if not _is_network_of(allowed, made := import_network(name)):
            rule = f"class of networks, and no function of {module}"
            raise ValueError(f"weights made by {name}, which is no {rule}, but {made!r:.80}: {remedy}")
    own = to_model_config(name if model is None else model, values["har"]["frequency"])
    if own.has_own_code != (":" in name) or (own.name != name and not own.has_own_code):
        raise ValueError(f"model: expected what makes {name}; got {model!r}")
    config = own.from_dict(values)
    if config.name != name:  # the settings in the file
        raise ValueError(f"model: expected settings of {name}; got those of {config.name}")
    return config


def _is_network_of(modules: Collection[str], made: Any) -> bool:
    """Whether these modules or packages make such networks: their names include those of all that they import."""
    if isinstance(made, nn.Module | Windowed):
        return True
    own = str(getattr(made, "__module__", ""))
    if isinstance(made, type) and issubclass(made, nn.Module):
        return own in modules or own.partition(".")[0] in modules
    return isinstance(made, FunctionType) and own in modules


def check_names(symbols: Sequence[Any], contracts: Sequence[Any], sources: Sequence[Any]) -> None:
    """Raise ValueError unless names, product codes and sources of a file are those of N different symbols."""
    for symbol in symbols:
        if problem := symbol_problem(symbol) if isinstance(symbol, str) else "it is no text":
            raise ValueError(f"symbols: expected names; got {symbol!r}: {problem}")
    if not symbols or len(set(symbols)) < len(symbols):
        raise ValueError(f"symbols: expected one or more different names; got {', '.join(symbols) or 'none'}")
    if len(contracts) != len(symbols) or not all(code is None or code in CONTRACTS for code in contracts):
        raise ValueError(
            f"contracts: expected {len(symbols)} known product codes or null; got {list(contracts)}"[:MAX_REASON]
        )
    texts = all(isinstance(x, dict) and all(isinstance(text, str) for text in x.values()) for x in sources)
    if not texts or len(sources) not in (0, len(symbols)):
        raise ValueError(f"sources: expected none or {len(symbols)} records of texts; got {list(sources)}"[:MAX_REASON])
    for source in sources:
        for name, text in source.items():
            if problem := (unit_problem if name == "unit" else text_problem)(text):
                raise ValueError(f"sources: expected a {name[:80]!r} {problem}; got {text[:80]!r}")
        if "unit" not in source:
            raise ValueError(f"sources: expected the unit of each price; got {source}"[:MAX_REASON])
    if names := [x["symbol"] for x, symbol in zip(sources, symbols) if x.get("symbol", symbol) != symbol]:
        raise ValueError(f"sources: expected those of the symbols in their order; got {names[0]!r}")


def check_settings(har: HarConfig, symbols: Sequence[str]) -> None:
    """Raise ValueError for settings that no fit has: more than a century of rows, or references among the symbols."""
    rows = {"horizons": har.horizons, "halflives": har.halflives, "trends": har.trends, "warmup": (har.warmup,)}
    for name, values in rows.items():
        if values[-1] > MAX_ROWS:
            raise ValueError(f"settings: expected {name} of at most {MAX_ROWS} rows; got {values[-1]}")
    if not (math.isfinite(har.floor) and math.isfinite(har.bound)):
        raise ValueError(f"settings: expected a finite floor and bound; got {har.floor} and {har.bound}")
    for reference in har.references:
        if problem := symbol_problem(reference) or ("other than the symbols" if reference in symbols else ""):
            raise ValueError(f"references: expected names {problem}; got {reference[:80]!r}")


def check_text(name: str, text: str) -> None:
    """Raise ValueError unless a text of a file is printable: a terminal would run other characters."""
    if problem := text_problem(text):
        raise ValueError(f"{name}: expected a text {problem}; got {text[:80]!r}")


def parse_date(text: str) -> date:
    """The date of ISO text of ten characters; ValueError for any other."""
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(f"expected a date as {day}; got {text[:80]!r}")
    return day


def check_weights(state: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless weights are finite, but for a price scale, and those of `Har` give increasing quantiles.

    Args:
        state: tensors by their names in a model, with any prefix.
    """
    for name, x in state.items():
        if f".{name}".endswith(f".har.{SCALE}"):
            if not (x.isnan() | ((x > 0) & x.isfinite())).all():
                raise ValueError(f"weights: expected positive numbers, or NaN, in {name}; got {x.tolist()[:3]}")
            continue
        if x.is_floating_point() and not x.isfinite().all():
            raise ValueError(f"weights: expected finite numbers in {name}; got {x[~x.isfinite()][0]}")
        for ending, (rule, is_valid) in WEIGHTS.items():
            if f".{name}".endswith(f".{ending}") and not is_valid(x):
                raise ValueError(f"weights: expected {rule} in {name}; got other numbers")


def check_pairs(state: dict[str, Tensor], symbols: int, config: HarConfig) -> None:
    """Raise ValueError unless the pairs are sorted by symbol and each names two prices, with its coefficients."""
    pairs, count = state[PAIRS], len(state[PAIRS])
    if pairs.dtype != torch.long:
        raise ValueError(f"location: expected pairs of numbers of prices; got {pairs.dtype}")
    shapes = {PAIRS: (count, 2), COEFFICIENTS: (len(config.horizons), count), ROWS: (count,)}
    received = {name: tuple(state[name].shape) if name in state else None for name in shapes}
    if received != shapes:
        raise ValueError(f"location: shapes must be {shapes}; got {received}")
    limits = torch.tensor([symbols, symbols + len(config.references)])
    if (pairs < 0).any() or (pairs >= limits).any() or (pairs[:, 0].diff() < 0).any():
        rule = f"pairs must be sorted numbers of one of {symbols} symbols and one of {limits[1]} prices"
        raise ValueError(f"location: {rule}; got {pairs.tolist()[:3]} ...")
    if (pairs[:, 0] == pairs[:, 1]).any() or len(pairs.unique(dim=0)) < count:
        raise ValueError(f"location: expected different pairs of two prices each; got {pairs.tolist()[:3]} ...")
    if state[ROWS].dtype != torch.long or (state[ROWS] < 0).any():
        raise ValueError(f"location: expected numbers of rows of each pair; got {state[ROWS].tolist()[:3]} ...")


WEIGHTS: dict[str, tuple[str, Callable[[Tensor], bool]]] = {
    "har.z": ("quantiles that increase", lambda x: bool((x.diff(dim=-1) >= 0).all())),
    "har.mix": ("no negative coefficient", lambda x: bool((x >= 0).all())),
    "har.long_run": ("no negative variance", lambda x: bool((x >= 0).all())),
    "har.shrink": ("factors from 0 to 1", lambda x: bool(((x >= 0) & (x <= 1)).all())),
}


def _check_types(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless tensors have the names, shapes and kinds of number of a model's.

    All weights of a network may have another precision, as those of `optimize.mixed_precision`, and those of `Har` too.
    """
    pairs = [name for name in state if name.rpartition(".")[0].endswith("har.location")]  # as many as a fit found
    if missing := sorted((expected.keys() ^ state.keys()) - set(pairs)):
        raise ValueError(
            f"weights: expected {missing[0]} {'in the file' if missing[0] in expected else 'not to be there'}"
        )
    network = {name for name, x in expected.items() if x.dtype in FLOATS and ".har." not in f".{name}"}
    is_uniform = len({state[name].dtype for name in network}) < 2
    for name in sorted(expected.keys() & state.keys()):
        x, like = state[name], expected[name]
        is_other = x.dtype in FLOATS and like.dtype in FLOATS and (is_uniform or name not in network)
        same = x.dtype == like.dtype or is_other
        if not same or (x.shape != like.shape and name not in pairs):
            received = f"{x.dtype} {tuple(x.shape)}"
            raise ValueError(f"weights: expected {like.dtype} {tuple(like.shape)} in {name}; got {received}")


def _parse_record(values: dict[str, Any], symbols: int, signed: Collection[int]) -> FitRecord:
    """The record of a fit from JSON."""
    record = FitRecord(
        **values
        | {
            "corrected": tuple(values["corrected"]),
            "validation": tuple(map(tuple, values["validation"])),
            "prices": tuple(PriceStatistics(**statistics) for statistics in values.get("prices", ())),
            "covariates": tuple(CovariateSpec(*spec) for spec in values.get("covariates", ())),
        }
    )
    check_fields(record)
    check_statistics(record.prices, symbols, signed)
    check_text("note", record.note)
    parse_toml(record.settings)
    first, through = parse_date(record.first), parse_date(record.through)
    if first > through or record.rows < 1 or record.epoch < 0:
        raise ValueError(
            f"record: expected rows from a first to a last date; got {record.rows} from {first} to {through}"
        )
    return record


def check_statistics(prices: Sequence[PriceStatistics], symbols: int, signed: Collection[int] = ()) -> None:
    """Raise ValueError unless the statistics of training prices are possible, one record for each symbol or none.

    Args:
        prices: the records.
        symbols: N.
        signed: numbers of the symbols whose prices may be zero or negative.
    """
    if len(prices) not in (0, symbols):
        raise ValueError(f"training prices: expected none or {symbols} records; got {len(prices)}")
    for n, x in enumerate(prices):
        check_fields(x)
        parse_date(x.date)
        least = -math.inf if n in signed else 0
        if not least < x.lowest <= x.last <= x.highest < math.inf or not 0 <= x.largest_move < math.inf:
            raise ValueError(f"training prices: expected {least:g} < lowest <= last <= highest and a move; got {x}")


def signed_columns(scale: Tensor | None) -> tuple[int, ...]:
    """Numbers of the symbols with a price scale, of (N,), NaN = log."""
    return () if scale is None else tuple((~scale.isnan()).nonzero()[:, 0].tolist())


class _MemoryLimit(TorchDispatchMode):
    """Within it, tensors are created with so many numbers at most: the settings of a file may ask for any size."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled within it, and Dynamo takes a second to import

    def __init__(self, numbers: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.numbers = numbers

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        sizes = args[0] if args and isinstance(args[0], list | tuple) else ()
        if all(isinstance(size, int) for size in sizes) and math.prod(sizes) > self.numbers:
            raise ValueError(f"settings of a model of the size of its weights; got tensors of {list(sizes)}")
        return func(*args, **(kwargs or {}))
