"""Out-of-sample evaluation of generated windows against real ones, compared with a stationary bootstrap."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.data import calendar_years, check_daily, check_not_synthetic, to_panel
from torchcommodity.scenarios._bootstrap import stationary_bootstrap
from torchcommodity.scenarios._fit import ScenarioFitConfig, fit_scenarios
from torchcommodity.scenarios._model import ScenarioModel
from torchcommodity.scenarios._returns import split_returns
from torchcommodity.scenarios._stylized_facts import Facts, abs_autocorrelation, fact_distances, stylized_facts
from torchcommodity.training import check_prices, check_returns, one_thread

if TYPE_CHECKING:
    import pandas as pd

STEP = 21  # rows from one real window to the next
REAL, GAN, UNTRAINED, BOOTSTRAP, PAST = "real", "scenario-gan", "untrained", "bootstrap", "past"


@dataclass(frozen=True, eq=False, repr=False)
class ScenarioEvaluation:
    """Distance of generated windows from real ones, by source and family of stylized facts; lower is closer.

    The sources are `scenario-gan`, the trained generator; `untrained`, the generator initialized by moments;
    `bootstrap`; and `past`, the real windows of the fit.
    """

    first: str  # date of the first real return
    last: str
    windows: int  # number of real windows, one every 21 rows
    paths: int  # number of paths per generator
    distances: dict[str, dict[str, float]]  # source: family: distance
    abs_autocorrelation: dict[str, list[float]]  # real and source: autocorrelation of abs(r) at lags 1 to 63
    leave_one_year_out: dict[str, float]  # year: total distance of the generator minus the bootstrap's without it
    facts: dict[str, Facts]  # real and source

    def __repr__(self) -> str:
        totals = ", ".join(f"{name} {families['total']:.3f}" for name, families in self.distances.items())
        return f"ScenarioEvaluation({self.windows} windows {self.first} to {self.last}; {totals})"

    def to_pandas(self) -> "pd.DataFrame":
        """Convert the distances to a DataFrame: families by sources, `total` last."""
        import pandas as pd

        table: pd.DataFrame = pd.DataFrame(self.distances)
        return table

    def fact_means(self) -> "pd.DataFrame":
        """Mean of the facts over windows and over a family's assets, pairs and lags; families by sources."""
        import pandas as pd

        table: pd.DataFrame = pd.DataFrame(
            {name: {family: float(fact.mean()) for family, fact in facts.items()} for name, facts in self.facts.items()}
        )
        return table


@operation("evaluate_scenarios")
@one_thread()
def evaluate_scenarios(
    model: ScenarioModel,
    prices: Any,
    config: ScenarioFitConfig | None = None,
    *,
    paths: int = 1000,
    seed: int = 0,
) -> ScenarioEvaluation:
    """Compare a generator and its baselines with the real windows after the last row of the fit.

    Real windows overlap; leaving out one calendar year at a time shows the variation of the result.

    Args:
        model: result of `fit_scenarios(prices, through=...)`.
        prices: real prices, anything that `data.to_panel` takes: those of the fit and at least one more window.
        config: config of the fit, for the untrained generator.
        paths: number of paths per generator.
        seed: random seed of the paths.

    Raises:
        TypeError: `prices` has another type.
        ValueError: the panel is synthetic, or less than one window follows the last row of the fit.
    """
    panel = to_panel(prices)
    check_not_synthetic(panel)
    check_daily(panel.dates)
    panel = panel.select(list(model.symbols))
    check_prices(panel)
    check_returns(panel, "a scenario of returns")
    window = model.generator.config.window
    past, later, dates = split_returns(panel, model.record.through, window)
    config = config or ScenarioFitConfig(model.generator.config)
    by_moments = replace(config, train=replace(config.train, steps=0))
    untrained = fit_scenarios(panel, by_moments, seed=model.record.seed, through=model.record.through)
    generated = {
        GAN: model.sample(paths, seed=seed),
        UNTRAINED: untrained.sample(paths, seed=seed),
        BOOTSTRAP: stationary_bootstrap(past, model.symbols, paths, window, seed=seed),
    }
    windows = {name: scenarios.returns.plain() for name, scenarios in generated.items()}
    windows |= {PAST: _windows(past, window), REAL: _windows(later, window)}
    facts = {name: stylized_facts(x) for name, x in windows.items()}
    return ScenarioEvaluation(
        str(dates[0]),
        str(dates[-1]),
        len(facts[REAL]["volatility"]),
        paths,
        {name: fact_distances(facts[REAL], facts[name]) for name in (GAN, UNTRAINED, BOOTSTRAP, PAST)},
        {name: abs_autocorrelation(x) for name, x in windows.items()},
        _leave_one_year_out(facts, dates, window),
        facts,
    )


def _windows(returns: Tensor, window: int) -> Tensor:  # (R, N) -> (W, T, N)
    return returns.unfold(0, window, STEP).mT


def _leave_one_year_out(facts: dict[str, Facts], dates: np.ndarray, window: int) -> dict[str, float]:
    """Total distance of the generator minus the bootstrap's, without the windows that end in each calendar year."""
    ends = calendar_years(dates[window - 1 :: STEP])
    differences = {}
    for year in np.unique(ends):
        selected = ends != year
        if selected.sum() < 2:
            continue
        real = {family: fact[selected] for family, fact in facts[REAL].items()}
        generator, bootstrap = (fact_distances(real, facts[name])["total"] for name in (GAN, BOOTSTRAP))
        differences[str(year)] = generator - bootstrap
    return differences
