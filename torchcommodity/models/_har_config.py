"""Settings of `Har`."""

from dataclasses import dataclass

from torchcommodity.models._field_types import check_fields
from torchcommodity.models._frequency import Frequency, frequency_settings

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))


@dataclass(frozen=True)
class HarConfig:
    """Settings of `Har`; the defaults are those of the published results, on daily prices. See `for_frequency`."""

    horizons: tuple[int, ...] = (5, 21, 63, 126)  # rows: a week, a month, a quarter, half a year
    levels: tuple[float, ...] = LEVELS
    halflives: tuple[int, ...] = (8, 21, 63, 252)  # rows with a return
    trends: tuple[int, ...] = (21, 63, 252)  # rows with a return
    cap: float = 0.25  # log-returns are clipped to +-cap in variances and features: limits the weight of a single day
    floor: float = 1e-10  # minimum variance per row (0.001 % a day), so that the scale of constant prices is positive
    warmup: int = 252  # returns that a symbol needs before its first forecast
    gap_prior: float = 6.0  # F at which half of a symbol's past mean gaps is expected where no curve is known
    gap_variance_prior: float = 5.0  # gaps that twice the variance of a return counts for
    shape_prior: float = 20.0  # independent outcomes for which the pooled shape of the quantiles counts; inf: pooled
    mix_prior: float = 63.0  # rows of a horizon at which coefficients are drawn half-way to equal ones; inf: not drawn
    bound: float = 0.3  # limit of a network's correction of log sigma before it is multiplied by shrink
    shrink: float = 0.5  # factor applied to a learned correction: 0.5 limits the damage of overfitting
    frequency: Frequency = "daily"  # of the prices: what a row is
    extra_terms: tuple[str, ...] = ()  # names of variance terms that the caller provides, such as of covariates
    extra_ratios: tuple[str, ...] = ()  # those of them that are multiples of the slow variance
    averages: bool = False  # whether prices are averages of their period; a fit takes it from `Panel.averages`

    def __post_init__(self) -> None:
        check_fields(self, ("cap", "floor", "bound", "gap_prior", "gap_variance_prior", "shape_prior", "mix_prior"))
        rising = {"horizons": self.horizons, "levels": self.levels, "halflives": self.halflives, "trends": self.trends}
        for name, values in rising.items():
            if not values or list(values) != sorted(set(values)) or values[0] <= 0:
                raise ValueError(f"HarConfig: {name} must be positive and strictly increasing; got {values}")
        if self.levels[-1] >= 1:
            raise ValueError(f"HarConfig: levels must lie strictly between 0 and 1; got {self.levels}")
        if not 0 <= self.shrink <= 1:
            raise ValueError(f"HarConfig: shrink must be in [0, 1]; got {self.shrink}")
        if self.warmup < 1:
            raise ValueError(f"HarConfig: warmup must be at least 1; got {self.warmup}")
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
