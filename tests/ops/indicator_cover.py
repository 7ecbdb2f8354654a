"""Indicators on which the tests check what the engine does for all of them."""

from torchcommodity.ops import indicators
from torchcommodity.ops.series import Operator

# every statement of a program, in and outside a loop, and each that has a gradient in an indicator that has one
STATEMENTS = ("avgdev", "ceil", "correl", "cumsum", "dx", "exp", "ht_sine", "ht_trendmode", "kama", "linearreg_slope",
              "ln", "minmaxindex", "percentrank", "stochrsi", "supertrend", "wad")  # fmt: skip
NO_FORMULAS = ("percentile", "sar", "sarext")
SETTINGS_CHOOSE_THE_FORMULA = ("bbands", "ma", "macd", "macdext", "mavp", "ppo", "stoch")
COVER = sorted({"mama", *STATEMENTS, *NO_FORMULAS, *SETTINGS_CHOOSE_THE_FORMULA})  # mama: a loop with a gradient


def formulas() -> list[str]:
    return [name for name in indicators.__all__ if isinstance(getattr(indicators, name), Operator)]


def statements(name: str) -> set[tuple[str, bool]]:
    """The statements of an indicator's program, each with whether it stands in a loop."""
    kinds, in_loop = set(), False
    for line in getattr(indicators, name).program().split("; "):
        kind = line.split()[0]
        kinds.add((kind, in_loop))
        in_loop = kind == "feedback" or (in_loop and kind != "assign")
    return kinds
