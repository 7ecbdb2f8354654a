"""Settings that count rows, for weekly and monthly prices; the defaults of every config are those of daily prices."""

from collections.abc import Mapping
from typing import Any, Literal

Frequency = Literal["daily", "weekly", "monthly"]
Settings = Mapping[str, Any]

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
            "shape_prior": 200.0,  # see docs/results/monthly.md
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
