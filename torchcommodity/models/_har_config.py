"""Settings of `Har`, base of the settings of a model, and what differs for weekly and monthly prices."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from torchcommodity.models._config_fields import (
    Bounds,
    Increasing,
    IncreasingInts,
    PositiveFloat,
    check_fields,
    config_from_dict,
)

if TYPE_CHECKING:
    from torchcommodity.models._har_network import HarNetwork

Frequency = Literal["daily", "weekly", "monthly"]
Settings = Mapping[str, Any]
LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))

# log-returns of a month vary about sqrt(21) times as much as those of a day, hence `cap`. A correlation needs some
# twenty rows, whatever their spacing.
_CORRELATION: Settings = {"window": 24, "min_periods": 16, "lag": 6}

SETTINGS: dict[Frequency, dict[str, Settings]] = {
    "daily": {},
    "weekly": {
        "har": {
            "horizons": (1, 4, 13, 26),
            "halflives": (2, 4, 13, 52),
            "trends": (4, 13, 52),
            "cap": 0.5,
            "warmup": 104,
            "mix_prior": 13.0,
            "ranges": False,
        },
        "har-regime": {"window": 52, "min_periods": 34, "lag": 13},
        "garch-lstm": {"halflives": (2.0, 4.0, 13.0)},
        "har-mlp-lstm": {"window": 52, "min_periods": 34, "lag": 13, "season": 13, "halflife": 8.0},
        "har-orthogonal-lstm": {"halflives": (1.0, 2.0, 4.0, 13.0)},
    },
    "monthly": {
        "har": {
            "horizons": (1, 3, 6, 12),
            "halflives": (1, 3, 6, 12),
            "trends": (1, 3, 12),
            "cap": 1.0,
            "warmup": 24,
            "mix_prior": 3.0,
            "ranges": False,
            "shape_prior": 200.0,  # see docs/results/monthly.md
            "momentum": True,
        },
        "har-regime": _CORRELATION,
        "garch-lstm": {"halflives": (2.0, 6.0, 12.0)},
        "har-mlp-lstm": {**_CORRELATION, "season": 12, "halflife": 6.0},
        "har-orthogonal-lstm": {"halflives": (1.0, 3.0, 6.0, 12.0)},
    },
}
"""By frequency, `har` or the name of a model: the settings that differ from the defaults."""


def frequency_settings(name: str, frequency: Frequency) -> Settings:
    """Settings of `har` or of a model that differ from its defaults at this frequency.

    Raises:
        ValueError: an unknown frequency.
    """
    if frequency not in SETTINGS:
        raise ValueError(f"frequency: expected one of {', '.join(SETTINGS)}; got {frequency!r}")
    return SETTINGS[frequency].get(name, {})


@dataclass(frozen=True)
class HarConfig:
    """Settings of `Har`; the defaults are those of the published results, on daily prices. See `for_frequency`."""

    horizons: IncreasingInts = (5, 21, 63, 126)  # rows: a week, a month, a quarter, half a year
    levels: Annotated[tuple[float, ...], Increasing()] = LEVELS
    halflives: IncreasingInts = (8, 21, 63, 252)  # rows with a return
    trends: IncreasingInts = (21, 63, 252)  # rows with a return
    cap: PositiveFloat = 0.25  # log-returns are clipped to +-cap in variances and features: limits the weight of a day
    floor: PositiveFloat = 1e-10  # minimum variance per row (0.001 % a day): the scale of constant prices is positive
    warmup: Annotated[int, Bounds(ge=1)] = 252  # returns that a symbol needs before its first forecast
    gap_prior: PositiveFloat = 6.0  # F at which half of a symbol's past mean gaps is expected where no curve is known
    gap_variance_prior: PositiveFloat = 5.0  # gaps that twice the variance of a return counts for
    shape_prior: PositiveFloat = 20.0  # independent outcomes that the pooled shape of quantiles counts for; inf: pooled
    mix_prior: PositiveFloat = 63.0  # rows of a horizon that draw coefficients half-way to equal ones; inf: not drawn
    bound: PositiveFloat = 0.3  # limit of a network's correction of log sigma before it is multiplied by shrink
    shrink: Annotated[float, Bounds(ge=0, le=1)] = 0.5  # factor of a correction: limits the damage of overfitting
    frequency: Frequency = "daily"  # of the prices: what a row is
    extra_terms: tuple[str, ...] = ()  # names of variance terms that the caller provides, such as of covariates
    extra_ratios: tuple[str, ...] = ()  # those of them that are multiples of the slow variance
    location: bool = True  # whether related prices and seasons are expected to move a price
    momentum: bool = False  # whether trends of a symbol and of all symbols are, too
    references: tuple[str, ...] = ()  # names of further prices that help to forecast, and are not forecast
    curve_of: tuple[str, ...] = ()  # of each symbol, the product whose futures curve helps to forecast a spot price; ""
    ranges: bool = True  # whether open, high and low give the variance of a row where prices have them
    bars: bool = False  # whether prices have them; a fit takes it from `Panel.bars`
    averages: bool = False  # whether prices are averages of their period; a fit takes it from `Panel.averages`

    def __post_init__(self) -> None:
        check_fields(self)
        if self.levels[-1] >= 1:
            raise ValueError(f"HarConfig: levels must lie strictly between 0 and 1; got {self.levels}")
        if len(set(self.terms)) < len(self.terms) or not set(self.extra_ratios) <= set(self.extra_terms):
            rule = "extra_terms must have names of their own, and extra_ratios be among them"
            raise ValueError(f"HarConfig: {rule}; got {self.extra_terms} and {self.extra_ratios}")

    @classmethod
    def for_frequency(cls, frequency: Frequency) -> "HarConfig":
        """Defaults for daily, weekly or monthly prices: horizons, half-lives, trends, cap and warm-up in their rows.

        Example:
            >>> HarConfig.for_frequency("monthly").horizons
            (1, 3, 6, 12)
        """
        return cls(frequency=frequency, **frequency_settings("har", frequency))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the K variance terms, in the order of their coefficients."""
        shared = (f"ewm{halflife}" for halflife in self.halflives)
        return (*shared, "long-run", "garch", *self.extra_terms, "rolls")

    @property
    def features(self) -> int:
        """F: ratios of neighboring variance terms, absolute last return, absolute trends."""
        return len(self.terms) - 1 + len(self.trends)


@dataclass(frozen=True)
class ModelConfig:
    """Settings of a model, which they name and build; `har` are those of its econometric part."""

    registered: ClassVar[str] = ""  # name in `MODELS`
    has_own_code: ClassVar[bool] = False  # whether code outside of this package, which no file holds, makes the model

    har: HarConfig = field(default_factory=HarConfig)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def name(self) -> str:
        """Name in `MODELS`; of a network of the user's its import path."""
        return self.registered

    @property
    def title(self) -> str:
        """The name as a report writes it."""
        return self.name.upper()

    def build(self, assets: int) -> "HarNetwork":
        """The untrained model of N symbols."""
        raise NotImplementedError(f"{type(self).__name__} must define build(assets)")

    def numbers(self) -> dict[str, int | float]:
        """Numbers of the network by name, without those of `har`."""
        values = {x.name: getattr(self, x.name) for x in fields(self)}
        return {name: value for name, value in values.items() if type(value) in (int, float)}

    def with_numbers(self, numbers: Mapping[str, int | float]) -> "ModelConfig":
        """Settings with other `numbers`."""
        changes: dict[str, Any] = {**numbers}
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values, for a file."""
        return asdict(self)

    def from_dict(self, values: Mapping[str, Any]) -> "ModelConfig":
        """Settings of the same model from plain values, the inverse of `to_dict`; missing ones have their defaults."""
        return config_from_dict(type(self), values)
