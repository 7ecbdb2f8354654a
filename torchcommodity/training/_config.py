"""Settings of training and fitting."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Annotated, Any

from torch_opkit.arguments import current_operation
from torchcommodity._choices import DEFAULT_MODEL
from torchcommodity.data import Horizon, Panel, horizon_rows, row_calendar
from torchcommodity.models import (
    Bounds,
    Frequency,
    ModelConfig,
    NonNegativeFloat,
    check_fields,
    default_config,
    model_name,
    to_model_config,
)
from torchcommodity.training._device import Device
from torchcommodity.training._runtime import MatmulPrecision, Precision

Count = Annotated[int, Bounds(ge=1)]


@dataclass(frozen=True)
class TrainConfig:
    """Settings of network training; the defaults are those of the published results, on daily prices."""

    epochs: Annotated[int, Bounds(ge=0)] = 10  # 0 skips training: the model keeps its econometric baseline
    patience: Count = 4  # epochs without improvement before early stopping
    window: Count = 252  # rows of a training sequence
    batch_size: Count = 2  # sequences per step, each with all symbols
    micro_batches: Count = 1  # parts a batch is split into for gradient accumulation: less memory, the same gradient
    learning_rate: Annotated[float, Bounds(gt=0)] = 3e-3  # AdamW
    weight_decay: NonNegativeFloat = 0.1
    gradient_clip: Annotated[float, Bounds(gt=0)] = 1.0  # maximum gradient norm
    validation_fraction: Annotated[float, Bounds(gt=0, lt=1)] = 0.2  # last rows of the panel, used for early stopping
    max_horizon: int = 63  # longest horizon the network corrects: longer ones have too few validation windows
    device: Device = "cpu"  # of the training, and of the forecasts of a backtest; see `resolve_device`
    precision: Precision = "32-true"
    matmul_precision: MatmulPrecision = "highest"  # see torch.set_float32_matmul_precision
    num_threads: Count = 1  # a step takes microseconds: synchronizing threads would cost more than it saves
    num_workers: Annotated[int, Bounds(ge=0)] = 0  # data loader processes

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def for_frequency(cls, frequency: Frequency) -> "TrainConfig":
        """Defaults for daily, weekly or monthly prices: the window and the longest corrected horizon in their rows."""
        window, max_horizon = TRAIN_ROWS[frequency]
        return cls(window=window, max_horizon=max_horizon)


TRAIN_ROWS: dict[Frequency, tuple[int, int]] = {"daily": (252, 63), "weekly": (104, 13), "monthly": (36, 6)}
"""Window of a training sequence, and the longest horizon that a network corrects."""


@dataclass(frozen=True)
class FitConfig:
    """Model, training settings and calibration; the defaults are those of the published results, on daily prices."""

    model: ModelConfig = field(default_factory=partial(default_config, DEFAULT_MODEL))
    train: TrainConfig = field(default_factory=TrainConfig)
    # share of the past drift removed from the quantiles; 0 for an equity index, whose drift pays
    symmetry: float = 0.5

    def __post_init__(self) -> None:
        model: object = self.model
        if not isinstance(model, ModelConfig):
            name = model if isinstance(model, str) else "har-lstm"
            hint = f"models.default_config({name!r})"
            raise TypeError(f"FitConfig: model must be the config of a model, such as {hint}; got {model!r}")
        train: object = self.train
        if not isinstance(train, TrainConfig):
            raise TypeError(f"FitConfig: train must be a TrainConfig, such as TrainConfig(epochs=10); got {train!r}")
        symmetry: object = self.symmetry
        if not isinstance(symmetry, Real) or not 0 <= float(symmetry) <= 1:
            raise ValueError(f"FitConfig: symmetry must be in [0, 1]; got {symmetry!r}")

    @classmethod
    def for_frequency(cls, frequency: Frequency, model: str = DEFAULT_MODEL) -> "FitConfig":
        """Default settings of a model for daily, weekly or monthly prices.

        Args:
            frequency: see `Panel.frequency`.
            model: name of a registered model.

        Example:
            >>> FitConfig.for_frequency("monthly", "har-lstm").train.window
            36
        """
        return cls(default_config(model, frequency), TrainConfig.for_frequency(frequency))


def check_config(
    config: Any,
    panel: Panel,
    horizons: Horizon | Iterable[Horizon] | None = None,
    levels: Iterable[float] | None = None,
    symmetry: float | None = None,
    model: Any = None,
) -> FitConfig:
    """Return the config, or the default one for the frequency of the panel if it is None.

    Args:
        config: settings of a fit, or None.
        panel: raw prices.
        horizons: in place of those of the config: rows, or texts such as "2w"; see `data.horizon_rows`.
        levels: quantile levels in place of those of the config, in any order.
        symmetry: share of the past drift to remove, in place of that of the config.
        model: in place of that of the config, see `models.to_model_config`.

    Raises:
        TypeError: another type; for the config of a model the message says how to wrap it.
        ValueError: settings for prices of another frequency; an invalid horizon or level.

    Example:
        >>> from torchcommodity import data
        >>> from torchcommodity.models import HarLstmConfig
        >>> from torch_opkit.arguments import operation
        >>> with operation("fit"):
        ...     check_config(HarLstmConfig(), data.embedded())
        Traceback (most recent call last):
        TypeError: fit: config must be a FitConfig; got HarLstmConfig; use FitConfig(model=HarLstmConfig(...))
    """
    if config is None:
        config = FitConfig.for_frequency(panel.frequency)
    if model is not None and isinstance(config, FitConfig):
        config = _with_model(config, to_model_config(model, panel.frequency))
    if not isinstance(config, FitConfig):
        name = type(config).__name__
        hint = f"; use FitConfig(model={name}(...))" if isinstance(config, ModelConfig) else ""
        raise TypeError(f"{current_operation()}: config must be a FitConfig; got {name}{hint}")
    if config.model.har.frequency != panel.frequency:
        raise ValueError(
            f"{current_operation()}: config must be for {panel.frequency} prices; got model.har.frequency="
            f"{config.model.har.frequency!r}; start from FitConfig.for_frequency({panel.frequency!r}, "
            f"{model_name(config.model)!r})"
        )
    changes: dict[str, Any] = {}
    if horizons is not None:
        changes["horizons"] = horizon_rows(horizons, row_calendar(panel.dates))
    if levels is not None:
        changes["levels"] = check_levels(levels)
    if config.model.har.averages != any(panel.averages):
        changes["averages"] = any(panel.averages)
    references = () if panel.references is None or not config.model.har.location else panel.references.symbols
    if config.model.har.references != references:
        changes["references"] = references
    curve_of = tuple(code or "" for code in panel.curve_of) if any(panel.curve_of) and config.model.har.location else ()
    if config.model.har.curve_of != curve_of:
        changes["curve_of"] = curve_of
    bars = panel.bars is not None and config.model.har.ranges
    if config.model.har.bars != bars:
        changes["bars"] = bars
    model = replace(config.model, har=replace(config.model.har, **changes)) if changes else config.model
    return FitConfig(model, config.train, config.symmetry if symmetry is None else symmetry)


def _with_model(config: FitConfig, model: ModelConfig) -> FitConfig:
    """The config with another model, and its settings of `Har` unless the model has its own."""
    if type(config.model) not in (type(model), type(default_config(DEFAULT_MODEL))):
        names = f"model={model_name(model)!r} and {model_name(config.model)!r} in config"
        raise ValueError(f"{current_operation()}: expected one model; got {names}")
    if config.model.har != default_config(DEFAULT_MODEL, config.model.har.frequency).har:
        model = replace(model, har=config.model.har)
    return replace(config, model=model)


def check_levels(levels: Any) -> tuple[float, ...]:
    """Quantile levels, ascending, each once.

    Raises:
        ValueError: no level, or one that is not a number strictly between 0 and 1.

    Example:
        >>> check_levels([0.95, 0.5, 0.05])
        (0.05, 0.5, 0.95)
    """
    values = [levels] if isinstance(levels, float) else list(levels)
    numbers = [isinstance(level, Real) and 0 < float(level) < 1 for level in values]
    if not values or not all(numbers):
        got = repr(values[numbers.index(False)]) if values else "none"
        percent = next((x for x in values if isinstance(x, Real) and 1 < float(x) < 100), None)
        if percent is not None:
            tail = (1 - float(percent) / 100) / 2
            got += f"; an interval of {percent:g} % has the levels {tail:g} and {1 - tail:g}"
        raise ValueError(f"{current_operation()}: levels must be numbers strictly between 0 and 1; got {got}")
    return tuple(sorted({float(level) for level in values}))
