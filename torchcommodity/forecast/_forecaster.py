"""Fitted forecaster, and its file."""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from torchcommodity.data import (
    CovariateSpec,
    Frequency,
    Horizon,
    Panel,
    PriceStatistics,
    check_frequency,
    check_not_future,
    summarize_names,
    write_atomic,
)
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._live import LiveState, start, step
from torchcommodity.forecast._predict import predict
from torchcommodity.forecast._simulate import simulate
from torchcommodity.forecast._simulation import Simulation
from torchcommodity.models import build_model, model_config, model_name
from torchcommodity.nn import to_int8
from torchcommodity.training import VarianceSource, parse_tensor_file, resolve_device, tensor_file_bytes, to_device

FORMAT = "torchcommodity.forecaster.4"


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
    curve: bool = False  # whether the fit had the curve of nearby contracts
    own_rolls: bool = False  # whether a series rolled on other days than the exchange's rule
    settings: str = ""  # the FitConfig as TOML, for `training.from_toml`
    prices: tuple[PriceStatistics, ...] = ()  # of each symbol; none in a file of an earlier version
    covariates: tuple[CovariateSpec, ...] = ()  # columns of the `Covariates` of the fit


@dataclass(frozen=True, eq=False, repr=False)
class Forecaster:
    """Fitted model with its symbols and the record of its fit. A pickled copy forecasts the same bits.

    Args:
        model: a Module of `models.MODELS`.
        symbols: N symbols, in the order of the model's columns.
        record: record of the fit.
        contracts: N product codes whose rolls the model expects, as in `data.Panel`. Default: all None.
        sources: provenance of the training prices, as in `Panel.sources`, without the time of retrieval.
    """

    model: Any
    symbols: tuple[str, ...]
    record: FitRecord
    contracts: tuple[str | None, ...] = ()
    sources: tuple[dict[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "contracts", tuple(self.contracts) or (None,) * len(self.symbols))

    @property
    def horizons(self) -> tuple[int, ...]:
        """Horizons in rows."""
        horizons: tuple[int, ...] = self.model.har.config.horizons
        return horizons

    @property
    def frequency(self) -> Frequency:
        """Of the prices: what a row is."""
        frequency: Frequency = self.model.har.config.frequency
        return frequency

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels."""
        levels: tuple[float, ...] = self.model.har.config.levels
        return levels

    @property
    def device(self) -> torch.device:
        """Device of the model, on which `predict` computes."""
        device: torch.device = self.model.har.mix.device
        return device

    def to(self, device: str | torch.device) -> "Forecaster":
        """The forecaster with its model on a device: a copy, unless it is there already.

        `predict` computes on the device, and returns a forecast on the CPU; `simulate`, `start` and `step` compute on
        the CPU. On a device without float64, such as "mps", the model is converted to float32.

        Args:
            device: a device of torch such as "cuda", "cuda:1", "mps" or "cpu", or "auto".

        Raises:
            ValueError: no such device on this machine.

        Example:
            >>> from torchcommodity import data, forecast
            >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
            >>> forecast.fit(wti).to("cpu").predict(wti)
            Forecast(WTI; from 2018-12-28; horizons 5, 21, 63, 126; 19 levels)
        """
        target = resolve_device("to", device)
        return self if target == self.device else replace(self, model=to_device(copy.deepcopy(self.model), target))

    def predict(self, prices: Any, covariates: VarianceSource | None = None) -> Forecast:
        """Forecast from the last row of `prices`; see `forecast.predict`."""
        return predict(self, prices, covariates)

    def simulate(
        self,
        prices: Any,
        paths: int = 1000,
        *,
        covariates: VarianceSource | None = None,
        horizon: Horizon | None = None,
        seed: int = 0,
    ) -> Simulation:
        """Joint price paths of all symbols after the last row of `prices`, by filtered historical simulation.

        The shocks are past days: their returns over the GARCH volatility that was expected of them, without the
        correlation that DCC expected. The shocks of a day stay together, and days are drawn in blocks of a quarter on
        average (stationary bootstrap), from the rows on which every symbol has a return. A path gives them its own
        correlation and GARCH volatility, which each of its steps updates; where DCC cannot be estimated (few rows for
        the number of symbols), the correlation is constant. Rolls are on the days of the calendar, with the gap that
        the model expects. At the forecaster's horizons the margins of each symbol are then those of `predict`: a
        monotone map gives the paths the published quantiles and keeps their ranks, hence their dependence over time
        and among symbols; between horizons the map is interpolated.

        Row t is a symbol's t-th own row after its last positive price, as for the horizons of `predict`. Only rows up
        to the last one of `prices`, and the calendar, are used. The same seed gives the same bits on the CPU.

        Args:
            prices: as for `predict`.
            paths: P, number of paths. The margins are matched over at least 1000 paths, of which these are the first.
            covariates: as for `predict`; they enter the margins.
            horizon: T, rows per path, or a text such as "2w", up to the longest horizon of the forecaster, the default.
            seed: random seed.

        Returns:
            `Simulation` with prices (P, T, N), float64, marked as synthetic.

        Raises:
            TypeError: an argument has another type.
            ValueError: `paths`, `horizon` or `seed` is out of range, too few rows have a return of every symbol, or as
                for `predict`.

        References:
            Barone-Adesi, Giannopoulos, Vosper (1999). VaR without correlations for portfolios of derivative securities.
            Journal of Futures Markets 19(5). Filtered historical simulation.
            Engle (2002). Dynamic conditional correlation. J. Business & Economic Statistics 20(3).
            doi:10.1198/073500102288618487.
            Politis, Romano (1994). The stationary bootstrap. JASA 89. doi:10.1080/01621459.1994.10476870.
            Schefzik, Thorarinsdottir, Gneiting (2013). Uncertainty quantification in complex simulation models using
            ensemble copula coupling. Statistical Science 28(4). doi:10.1214/13-STS443. Margins from one forecast, ranks
            from another.

        Example:
            >>> from torchcommodity import data, forecast
            >>> oil = data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31")
            >>> simulation = forecast.fit(oil).simulate(oil, horizon=21)
            >>> simulation.prices.shape
            torch.Size([1000, 21, 2])
        """
        return simulate(self, prices, paths, covariates=covariates, horizon=horizon, seed=seed)

    def start(self, prices: Any, covariates: VarianceSource | None = None) -> LiveState:
        """The state after the rows of `prices`, a dict of tensors, for forecasts row by row; see `step`.

        Args:
            prices: as for `predict`; may have fewer rows than the warm-up.
            covariates: as for `predict`.
        """
        return start(self, prices, covariates)

    def step(
        self, state: LiveState, prices: Any, covariates: VarianceSource | None = None
    ) -> tuple[LiveState, Forecast]:
        """The state after one or more further rows, and the forecast from the last of them.

        It has the bits of `predict` on all rows so far. With the model `har-garch` a step costs the same after any
        number of rows; other models keep their rows in the state, and run over them.

        Args:
            state: from `start` or `step` of this forecaster. It is not written to; safetensors can save it.
            prices: the new rows only, with the same symbols.
            covariates: as for `predict`, with all their values.

        Raises:
            ValueError: the state is another forecaster's, a row is not after those of the state, or as for `predict`.

        Example:
            >>> from torchcommodity import data, forecast
            >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
            >>> forecaster = forecast.fit(wti.between(None, "2017-12-31"))
            >>> state = forecaster.start(wti.between(None, "2018-12-26"))
            >>> state, live = forecaster.step(state, wti.between("2018-12-27"))
            >>> bool((live.prices == forecaster.predict(wti).prices).all())
            True
        """
        return step(self, state, prices, covariates)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the content of the file that `save` writes."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def align_panel(self, panel: Panel, *, operation: str = "predict") -> Panel:
        """Select the forecaster's symbols from a panel, in its order and with its contracts; see `align_panel`."""
        return align_panel(panel, self.symbols, self.contracts, self.frequency, operation=operation)

    def save(self, path: str | Path) -> None:
        """Write the forecaster to one safetensors file, atomically, with settings, symbols, record and a checksum.

        Example:
            >>> from torchcommodity import data, forecast
            >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
            >>> path = getfixture("tmp_path") / "wti.safetensors"
            >>> forecast.fit(wti).save(path)
            >>> forecast.Forecaster.load(path).predict(wti)
            Forecast(WTI; from 2018-12-28; horizons 5, 21, 63, 126; 19 levels)
        """
        write_atomic(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Content of the file that `save` writes."""
        config = self.model.config
        model = {"name": model_name(config), "config": asdict(config)}
        fields = {"symbols": self.symbols, "contracts": self.contracts, "sources": self.sources}
        metadata = {**fields, "model": model, "record": asdict(self.record)}
        return tensor_file_bytes(FORMAT, self.model.state_dict(), metadata)

    @classmethod
    def load(cls, path: str | Path) -> "Forecaster":
        """Read a file written by `save`; forecasts have the same bits.

        Raises:
            ValueError: the file is damaged, truncated, or was not written by `Forecaster.save`.
            OSError: the file cannot be read.
        """
        return cls._from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def _from_bytes(cls, content: bytes, label: str = "content") -> "Forecaster":
        state, metadata = parse_tensor_file(content, FORMAT, "Forecaster", label)
        config = model_config(metadata["model"]["name"], metadata["model"]["config"])
        model = build_model(config, len(metadata["symbols"]))
        for name, x in state.items():
            if x.dtype == torch.int8:
                layer, _, weight = name.removesuffix(".original0").rpartition(".parametrizations.")
                to_int8(model.get_submodule(layer), weight)
        # assigned, not copied, so that weights keep their dtype
        model.load_state_dict(state, assign=True)
        record = metadata["record"] | {
            "corrected": tuple(metadata["record"]["corrected"]),
            "validation": tuple(map(tuple, metadata["record"]["validation"])),
            "prices": tuple(PriceStatistics(**record) for record in metadata["record"].get("prices", ())),
            "covariates": tuple(CovariateSpec(*spec) for spec in metadata["record"].get("covariates", ())),
        }
        symbols, contracts, sources = (tuple(metadata[key]) for key in ("symbols", "contracts", "sources"))
        return cls(model, symbols, FitRecord(**record), contracts, sources)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the content of the file: modules with parametrizations cannot be pickled."""
        return Forecaster._from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        name, symbols = model_name(self.model.config), summarize_names(self.symbols)
        fitted = f"fitted {self.record.first} to {self.record.through}, {self.record.rows:,} rows"
        return f"Forecaster({name}, {symbols}; {fitted}; horizons {', '.join(map(str, self.horizons))})"


def align_panel(
    panel: Panel,
    symbols: Sequence[str],
    contracts: Sequence[str | None],
    frequency: Frequency = "daily",
    *,
    operation: str = "predict",
) -> Panel:
    """Select the symbols of a forecaster from a panel, in its order and with its contracts, on the rows with a price.

    Args:
        panel: raw prices.
        symbols: N symbols of the forecaster.
        contracts: their N product codes; None = spot.
        frequency: of the prices of the fit.
        operation: public function that was called, for the error message.

    Raises:
        ValueError: the panel has no such symbol, another contract for it, prices of another frequency, or a date that
            is still to come.

    Example:
        >>> from torchcommodity import data
        >>> align_panel(data.embedded(), ("HENRY_HUB", "WTI"), (None, None)).symbols
        ('HENRY_HUB', 'WTI')
    """
    if missing := [symbol for symbol in symbols if symbol not in panel.symbols]:
        raise ValueError(
            f"{operation}: prices must have every symbol of the forecaster; got {summarize_names(panel.symbols, 20)} "
            f"without {summarize_names(missing)}"
        )
    panel = panel.select(symbols).drop_empty_rows()
    check_frequency(operation, panel.dates, frequency)
    if not panel.synthetic:  # simulated prices may lie in the future
        check_not_future(operation, panel.dates, frequency)
    for symbol, contract, fitted in zip(panel.symbols, panel.contracts, contracts):
        if contract is not None and contract != fitted:
            expected = "a spot price" if fitted is None else f"contract {fitted}"
            raise ValueError(f"{operation}: {symbol} must be {expected}, as in the fit; got contract {contract}")
    return panel.with_contracts(dict(zip(panel.symbols, contracts)))
