"""Generated windows against real ones that the generator has not seen, beside a stationary bootstrap."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from torch import Tensor

from torchcommodity.data import Panel, check_not_synthetic
from torchcommodity.scenarios._fit import ScenarioFitConfig, complete_returns, fit_scenarios
from torchcommodity.scenarios._generator import ScenarioMaker, Scenarios, stationary_bootstrap
from torchcommodity.scenarios._stylized_facts import Facts, distance, memory_of_size, stylized_facts
from torchcommodity.training import one_thread

STEP = 21  # rows from one real window to the next
REAL, OURS, UNTRAINED, BOOTSTRAP, PAST = "real", "scenario-gan", "untrained", "bootstrap", "past"


@dataclass(frozen=True)
class ScenarioEvaluation:
    """The distances of each maker's windows from the real ones, by family and in total, with what they are made of."""

    first: str  # date of the first real return
    last: str
    windows: int  # real ones, every 21 rows
    paths: int  # of each maker
    distances: dict[str, dict[str, float]]  # maker -> family -> distance
    memory: dict[str, list[float]]  # "real" and each maker: autocorrelation of abs(r) at lags 1 to 63
    without: dict[str, float]  # calendar year left out -> total of ours less that of the bootstrap
    facts: dict[str, Facts]  # "real" and each maker

    def frame(self) -> pd.DataFrame:
        """Families by makers, `total` last; lower is nearer."""
        table: pd.DataFrame = pd.DataFrame(self.distances)
        return table

    def means(self) -> pd.DataFrame:
        """The facts themselves: mean over windows and over a family's assets, pairs and lags, by maker."""
        table: pd.DataFrame = pd.DataFrame(
            {name: {family: float(fact.mean()) for family, fact in facts.items()} for name, facts in self.facts.items()}
        )
        return table


@one_thread()
def evaluate_scenarios(
    maker: ScenarioMaker,
    panel: Panel,
    config: ScenarioFitConfig | None = None,
    *,
    paths: int = 1000,
    seed: int = 0,
) -> ScenarioEvaluation:
    """Measure on the rows of the panel after the maker's last; the bootstrap sees what the maker was fitted on.

    Beside them stand the untrained generator, set by moments alone, and `past`, the real windows fitted on: how far
    one time is from another. Real windows overlap, so the error is told by leaving out one calendar year at a time.

    Args:
        maker: of `fit_scenarios(panel, through=...)`.
        panel: real prices, those it was fitted on and at least a window more.
        config: that of the fit, for the untrained generator.
        paths: of each maker.
        seed: of the paths.

    Raises:
        ValueError: the panel is synthetic, or no whole window follows the maker's last row.
    """
    check_not_synthetic("evaluate_scenarios", panel)
    panel = panel.select(list(maker.symbols))
    window = maker.generator.config.window
    past, ahead, dates = split(panel, maker.record.through, window)
    made = _made(maker, panel, past, config or ScenarioFitConfig(maker.generator.config), paths, seed)
    panels = {name: x.returns.plain() for name, x in made.items()}
    panels |= {PAST: _windows(past, window), REAL: _windows(ahead, window)}
    facts = {name: stylized_facts(x) for name, x in panels.items()}
    return ScenarioEvaluation(
        str(dates[0]),
        str(dates[-1]),
        len(facts[REAL]["volatility"]),
        paths,
        {name: distance(facts[REAL], facts[name]) for name in (OURS, UNTRAINED, BOOTSTRAP, PAST)},
        {name: memory_of_size(x) for name, x in panels.items()},
        _without_each_year(facts, dates, window),
        facts,
    )


def split(panel: Panel, through: str, window: int) -> tuple[Tensor, Tensor, np.ndarray]:
    """The complete returns (R, N) through a date, those after it, and the dates of these.

    Raises:
        ValueError: no whole window follows the date.
    """
    returns, dates = complete_returns(panel)
    seen = int((dates <= np.datetime64(through)).sum())
    if len(returns) - seen < window:
        got = f"{len(returns) - seen}"
        raise ValueError(f"evaluate_scenarios: expected {window} rows after {through}; got {got}")
    return returns[:seen], returns[seen:], dates[seen:]


def _made(
    maker: ScenarioMaker, panel: Panel, past: Tensor, config: ScenarioFitConfig, paths: int, seed: int
) -> dict[str, Scenarios]:
    silent = replace(config, train=replace(config.train, steps=0))
    untrained = fit_scenarios(panel, silent, seed=maker.record.seed, through=maker.record.through)
    return {
        OURS: maker.sample(paths, seed=seed),
        UNTRAINED: untrained.sample(paths, seed=seed),
        BOOTSTRAP: stationary_bootstrap(past, maker.symbols, paths, maker.generator.config.window, seed=seed),
    }


def _windows(returns: Tensor, window: int) -> Tensor:  # (R, N) -> (W, T, N)
    return returns.unfold(0, window, STEP).mT


def _without_each_year(facts: dict[str, Facts], dates: np.ndarray, window: int) -> dict[str, float]:
    """The difference of the totals when the windows that end in one calendar year are left out."""
    ends = dates[window - 1 :: STEP].astype("datetime64[Y]").astype(int) + 1970
    found = {}
    for year in np.unique(ends):
        kept = ends != year
        if kept.sum() < 2:
            continue
        real = {family: fact[kept] for family, fact in facts[REAL].items()}
        ours, theirs = (distance(real, facts[name])["total"] for name in (OURS, BOOTSTRAP))
        found[str(year)] = ours - theirs
    return found
