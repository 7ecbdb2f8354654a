"""Fitted forecaster: what it predicts, simulates and updates."""

import copy
import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from torch_opkit import Past
from torch_opkit.arguments import check_integer, current_operation, operation
from torchcommodity.data import (
    Covariates,
    Frequency,
    Horizon,
    Panel,
    SyntheticTensor,
    add_curve,
    add_references,
    compare_with_training,
    horizon_rows,
    restore_spreads,
    row_calendar,
    summarize_names,
    to_panel,
    write_atomic,
)
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._forecaster_file import FitRecord, forecaster_bytes, parse_forecaster
from torchcommodity.forecast._history import (
    PriceRange,
    align_panel,
    input_findings,
    select_prices,
    signed_price_findings,
)
from torchcommodity.forecast._live import LivePast, LiveState, append_rows, pack_state, unpack_state
from torchcommodity.forecast._location import Location, explain_location
from torchcommodity.forecast._other_words import hint_keywords, missing_attribute
from torchcommodity.forecast._simulation import Simulation
from torchcommodity.models import HarNetwork, Updatable, model_name, price_after
from torchcommodity.scenarios import filtered_historical_simulation
from torchcommodity.training import (
    FitConfig,
    ModelInputs,
    VarianceSource,
    covariate_variances,
    model_inputs,
    one_thread,
    resolve_device,
    to_device,
)


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

    model: HarNetwork
    symbols: tuple[str, ...]
    record: FitRecord
    contracts: tuple[str | None, ...] = ()
    sources: tuple[dict[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "contracts", tuple(self.contracts) or (None,) * len(self.symbols))

    @property
    def horizons(self) -> tuple[int, ...]:
        """Horizons in rows."""
        return self.model.har.config.horizons

    @property
    def references(self) -> tuple[str, ...]:
        """Further symbols that help to forecast, and are not forecast."""
        return self.model.har.config.references

    @property
    def curve_of(self) -> tuple[str | None, ...]:
        """Of each symbol the product whose futures curve helps to forecast it, or None."""
        return tuple(code or None for code in self.model.har.config.curve_of) or (None,) * len(self.symbols)

    @property
    def ranges(self) -> tuple[str, ...]:
        """Symbols whose variance comes from open, high and low too."""
        har = self.model.har
        return tuple(s for s, has in zip(self.symbols, har.has_ranges.tolist()) if has) if har.config.bars else ()

    @property
    def scale(self) -> torch.Tensor | None:
        """(N,) S of symbols whose prices may be zero or negative, NaN = log; None: all are logs."""
        return self.model.har.scale

    @property
    def signed(self) -> tuple[str, ...]:
        """Symbols whose prices may be zero or negative."""
        scales = [] if self.scale is None else self.scale.tolist()
        return tuple(symbol for symbol, scale in zip(self.symbols, scales) if not math.isnan(scale))

    @property
    def frequency(self) -> Frequency:
        """Of the prices: what a row is."""
        return self.model.har.config.frequency

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels."""
        return self.model.har.config.levels

    @property
    def device(self) -> torch.device:
        """Device of the model, on which `predict` computes."""
        return self.model.har.mix.device

    @operation("to")
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
        target = resolve_device(device)
        return self if target == self.device else replace(self, model=to_device(copy.deepcopy(self.model), target))

    @hint_keywords
    @operation("predict")
    @one_thread()
    @torch.no_grad()
    def predict(
        self, prices: Any, covariates: VarianceSource | None = None, references: Any = None, curve: Any = None
    ) -> Forecast:
        """Forecast from the last row of `prices`; see `forecast.predict`."""
        panel = self._panel(prices, references, curve)
        inputs = self._inputs(panel, covariates)
        self._check_warmup(self._price_range(inputs.prices))
        log_returns = self.model.eval()(*inputs.to(self.device).batch())[0].cpu().to(inputs.prices.dtype)
        return self._forecast(self._with_findings(panel, covariates), log_returns)

    @operation("location")
    @one_thread()
    def location(
        self, prices: Any, covariates: VarianceSource | None = None, references: Any = None, curve: Any = None
    ) -> Location:
        """What moves the median from the last row of `prices`: related prices, the season, curves, contract rolls.

        Args:
            prices: as for `predict`.
            covariates: as for `predict`.
            references: as for `predict`.
            curve: as for `predict`.

        Returns:
            The parts of each symbol at each horizon, none of a network that forecasts the median; printed as sentences.

        Example:
            >>> from torchcommodity import data, forecast
            >>> prices = data.embedded().between(None, "2018-12-31")
            >>> print(forecast.fit(prices).location(prices).sentence("HENRY_HUB", 63))
            3 months: season: -1.0 %
        """
        forecaster, panel = self.to("cpu"), self._panel(prices, references, curve)
        inputs = forecaster._inputs(panel, covariates)
        forecaster._check_warmup(forecaster._price_range(inputs.prices))
        if self.model.forecasts_median:
            return Location((), self.symbols, self.horizons, self.frequency, network=True)
        return explain_location(forecaster.model.har, inputs, self.symbols, self.references, panel.units)

    @operation("simulate")
    @one_thread()
    @torch.no_grad()
    def simulate(
        self,
        prices: Any,
        paths: int = 1000,
        *,
        covariates: VarianceSource | None = None,
        references: Any = None,
        curve: Any = None,
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
            references: as for `predict`; they enter the margins.
            curve: as for `predict`; it enters the margins and the gaps of the rolls.
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
        check_integer("simulate", 1, paths=paths)
        check_integer("simulate", 0, maximum=2**63 - 1, seed=seed)
        forecaster = self.to("cpu")
        panel = self._panel(prices, references, curve)
        rows = longest = self.horizons[-1]
        if horizon is not None:
            try:
                (rows,) = horizon_rows(horizon, row_calendar(panel.dates))
            except (TypeError, ValueError) as error:
                raise type(error)(f"simulate: {error}") from None
        if rows > longest:
            rule = f"horizon must be at most {longest} rows, the longest horizon of the forecaster"
            raise ValueError(f"simulate: {rule}; got {horizon!r}")
        forecast = self.predict(panel, covariates)
        simulated = filtered_historical_simulation(
            forecaster.model.har,
            model_inputs(panel, longest, references=self.references, bars=forecaster.model.har.config.bars),
            forecast.changes,
            rows=rows,
            paths=paths,
            seed=seed,
        )
        values = SyntheticTensor(price_after(forecast.last, simulated.log_returns, forecast.scale))
        expected = simulated.roll_gaps, simulated.location
        return Simulation(forecast, values, *expected, seed, simulated.block, simulated.residual_rows)

    @operation("start")
    @one_thread()
    @torch.no_grad()
    def start(
        self, prices: Any, covariates: VarianceSource | None = None, references: Any = None, curve: Any = None
    ) -> LiveState:
        """The state after the rows of `prices`, a dict of tensors, for forecasts row by row; see `step`.

        Args:
            prices: as for `predict`; may have fewer rows than the warm-up.
            covariates: as for `predict`.
            references: as for `predict`.
            curve: as for `predict`.
        """
        forecaster = self.to("cpu")
        panel = self._panel(prices, references, curve)
        past = Past({})
        if isinstance(forecaster.model, Updatable):
            forecaster.model.eval().update(past, forecaster._inputs(panel, covariates).unsqueeze())
        live = LivePast(panel, panel.dates, forecaster._price_range(panel.values.plain()), past)
        all_rows = not isinstance(forecaster.model, Updatable)
        return pack_state(live, forecaster.checksum, forecaster.scale, all_rows=all_rows)

    @operation("step")
    @one_thread()
    @torch.no_grad()
    def step(
        self,
        state: LiveState,
        prices: Any,
        covariates: VarianceSource | None = None,
        references: Any = None,
        curve: Any = None,
    ) -> tuple[LiveState, Forecast]:
        """The state after one or more further rows, and the forecast from the last of them.

        It has the bits of `predict` on all rows so far. With the model `har-garch` a step costs the same after any
        number of rows; other models keep their rows in the state, and run over them.

        Args:
            state: from `start` or `step` of this forecaster. It is not written to; safetensors can save it.
            prices: the new rows only, with the same symbols.
            covariates: as for `predict`, with all their values.
            references: as for `predict`, on the new rows.
            curve: as for `predict`, on the new rows; without it the curve of spot prices is not known on them.

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
        forecaster = self.to("cpu")
        before = unpack_state(state, forecaster.checksum, self.symbols, self.contracts, self.references, self.curve_of)
        new_rows = restore_spreads(add_references(to_panel(prices), references), self.sources)
        new_rows = select_prices(new_rows, self.symbols, self.contracts, self.references, self.curve_of)
        new_rows = self._with_curve(new_rows, curve)
        panel, first = forecaster.align_panel(append_rows(before.panel, new_rows)), len(before.panel)
        if len(panel) == first:
            raise ValueError("step: prices must have a row with a price; got none: skip rows without any")
        price_range = before.price_range.join(forecaster._price_range(panel.values.plain()[first:]))
        forecaster._check_warmup(price_range)
        inputs, model = forecaster._inputs(panel, covariates), forecaster.model.eval()
        if isinstance(model, Updatable):
            log_returns = model.update(before.past, inputs.after(first).unsqueeze())[0]
        else:
            log_returns = model(*inputs.batch())[0]
        dates, panel = np.concatenate([before.dates, panel.dates[first:]]), forecaster._with_findings(panel, covariates)
        after = LivePast(panel, dates, price_range, before.past)
        all_rows = not isinstance(model, Updatable)
        state = pack_state(after, forecaster.checksum, forecaster.scale, all_rows=all_rows)
        return state, forecaster._forecast(panel, log_returns, dates)

    def _forecast(self, panel: Panel, log_returns: torch.Tensor, dates: np.ndarray | None = None) -> Forecast:
        scale = None if self.scale is None else self.scale.cpu()
        return Forecast.from_log_returns(panel, self.horizons, self.levels, log_returns, dates, scale)

    def _price_range(self, prices: torch.Tensor) -> PriceRange:
        return PriceRange.of(prices, None if self.scale is None else self.scale.cpu())

    def _inputs(self, panel: Panel, covariates: VarianceSource | None) -> ModelInputs:
        """Inputs of the model from an aligned panel.

        Raises:
            ValueError: the fit had covariates that are missing or have another transform, or had none.
        """
        specs = covariates.specs if isinstance(covariates, Covariates) else ()
        transforms = {spec.name: spec.transform for spec in specs}
        for fitted in self.record.covariates:
            if (transform := transforms.get(fitted.name, fitted.transform)) != fitted.transform:
                raise ValueError(
                    f"{current_operation()}: covariate {fitted.name} must have the transform of the fit, "
                    f"{fitted.transform!r}; got {transform!r}"
                )
        har = self.model.har.config
        extra = covariate_variances(panel, har, covariates)
        return model_inputs(panel, har.horizons[-1], extra, self.references, har.bars)

    def _check_warmup(self, price_range: PriceRange) -> None:
        try:
            price_range.check(self.symbols, self.model.har.config.warmup)
        except ValueError as error:
            raise ValueError(f"{current_operation()}: {error}") from None

    def _with_findings(self, panel: Panel, covariates: VarianceSource | None) -> Panel:
        """The panel with what is unlike the training prices, and the covariates that are too old on its last row."""
        scale = None if self.scale is None else self.scale.cpu()
        findings = signed_price_findings(panel.findings, panel.values.plain(), panel.dates, self.symbols, scale)
        findings += compare_with_training(panel, self.record.prices, self.signed)
        findings += input_findings(panel, self.ranges)
        if isinstance(covariates, Covariates):
            findings += covariates.findings(panel.dates[-1])
        return replace(panel, findings=tuple(findings))

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the content of the file that `save` writes."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def align_panel(self, panel: Panel) -> Panel:
        """Select the forecaster's symbols, see `align_panel`; spreads that the panel lacks are made of their legs."""
        panel = restore_spreads(panel, self.sources)
        return align_panel(panel, self.symbols, self.contracts, self.frequency, self.references, self.curve_of)

    def _panel(self, prices: Any, references: Any, curve: Any) -> Panel:
        panel = self.align_panel(add_references(to_panel(prices), references))
        return self._with_curve(panel, curve)

    def _with_curve(self, panel: Panel, curve: Any) -> Panel:
        if curve is None:
            return panel
        if not any(self.curve_of) and all(panel.spot):
            raise ValueError(f"{current_operation()}: curve must be None, as in the fit, which had no curve; got one")
        return add_curve(panel, curve, dict(zip(self.symbols, self.curve_of)))

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

    @classmethod
    def from_module(
        cls, module: nn.Module, prices: Any, *, config: FitConfig | None = None, **settings: Any
    ) -> "Forecaster":
        """A forecaster of a network that is trained already: it is calibrated on the last fifth of the rows.

        Args:
            module: on windows of prices, see `models.windowed`, whose result it may be.
            prices: as for `fit`; the network should not have seen the last fifth of them.
            config: as for `fit`.
            **settings: `horizons`, `levels` and the other keywords of `fit`.

        Example:
            >>> from torch import nn
            >>> from torchcommodity import data, forecast
            >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
            >>> network = nn.Sequential(nn.Flatten(), nn.Linear(60, 4 * 19), nn.Unflatten(1, (4, 1, 19)))
            >>> forecast.Forecaster.from_module(network, wti).predict(wti)
            Forecast(WTI; from 2018-12-28; horizons 5, 21, 63, 126; 19 levels)
        """
        from torchcommodity.forecast._fit import fit

        panel = to_panel(prices)
        base = FitConfig.for_frequency(panel.frequency) if config is None else config
        untrained = replace(base, train=replace(base.train, epochs=0))
        return fit(panel, untrained, model=module, **settings)

    def to_bytes(self) -> bytes:
        """Content of the file that `save` writes."""
        return forecaster_bytes(self.model, self.symbols, self.record, self.contracts, self.sources)

    @classmethod
    def load(cls, path: str | Path, model: Any = None) -> "Forecaster":
        """Read a file written by `save`; forecasts have the same bits.

        Args:
            path: the file.
            model: of a network of the user's, the class or function that made it, as in `fit(model=...)`: a file has
                its weights only, and never chooses what is imported. Default: what the environment variable
                TORCHCOMMODITY_NETWORKS, import paths or packages with commas between them, allows to import.

        Raises:
            ValueError: the file is damaged, truncated, or was not written by `Forecaster.save`.
            OSError: the file cannot be read.
        """
        return cls._from_bytes(Path(path).read_bytes(), str(path), model)

    @classmethod
    def _from_bytes(cls, content: bytes, label: str = "content", model: Any = None) -> "Forecaster":
        return cls(*parse_forecaster(content, label, model))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the content of the file: modules with parametrizations cannot be pickled."""
        return Forecaster._from_bytes, (self.to_bytes(), "content", self.model.config)

    if not TYPE_CHECKING:  # type checkers would allow any name

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name)

    def __repr__(self) -> str:
        name, symbols = model_name(self.model.config), summarize_names(self.symbols)
        if self.references:
            symbols += f"; references {summarize_names(self.references, limit=2)}"
        fitted = f"fitted {self.record.first} to {self.record.through}, {self.record.rows:,} rows"
        return f"Forecaster({name}, {symbols}; {fitted}; horizons {', '.join(map(str, self.horizons))})"
