"""Result of a backtest and its scores: losses, skill, coverage, and Diebold-Mariano tests."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity._extras import extra
from torchcommodity.charts import COLORS, Chart, chart_layout, chart_number, plotly_figure
from torchcommodity.data import calendar_years, check_not_synthetic, summarize_names
from torchcommodity.forecast._intervals import inside
from torchcommodity.losses import pinball, qlike
from torchcommodity.models import price_after
from torchcommodity.training import one_thread

if TYPE_CHECKING:
    import pandas as pd

MIN_DATES = 5  # minimum number of dates of a Diebold-Mariano test


@dataclass(frozen=True)
class Score:
    """One model at one horizon, over the dates and symbols for which every model has a forecast."""

    model: str
    horizon: int  # rows
    pinball: float  # mean over the levels, in log-return
    skill: float  # reduction of the reference model's pinball loss, percent
    crps: float  # 2 x pinball
    coverage90: float  # share of targets between the quantiles 0.05 and 0.95; NaN where they are not among the levels
    qlike: float  # of the variance forecast against the squared cumulative log-return
    dm: float  # Diebold-Mariano statistic of the tested model against this one; negative: the tested model is better
    dm_p: float  # two-sided p-value of dm; both are NaN for identical forecasts and for fewer than 5 dates
    n: int  # number of targets
    dates: int  # number of dates with a target


@dataclass(frozen=True, repr=False)
class Scores:
    """Scores of every model at every horizon."""

    rows: tuple[Score, ...]
    first: str  # date of the first origin
    last: str  # date of the last origin

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a DataFrame with one row per horizon and model and the fields of `Score` as columns."""
        import pandas as pd

        table: pd.DataFrame = pd.DataFrame([asdict(row) for row in self.rows])
        return table

    def __repr__(self) -> str:
        skill = self.to_pandas().pivot_table(index="model", columns="horizon", values="skill", sort=False)
        return f"Skill in percent by horizon, {self.first} to {self.last}\n{skill.round(2)}"


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Out-of-sample forecasts of every row of the test years, and the realized returns.

    NaN where a model has no forecast, or where a target has not ended. Returns of a symbol whose prices may be
    negative are changes of asinh(P / S), with one S for the whole backtest; `price_changes` has them in price units.
    """

    model: str  # name of the tested model, a key of `quantiles`
    origins: np.ndarray  # (T,) datetime64[D]
    symbols: tuple[str, ...]
    horizons: tuple[int, ...]  # rows
    levels: tuple[float, ...]
    targets: Tensor  # (T, H, N) cumulative log-returns
    target_dates: np.ndarray  # (T, H, N) datetime64[D], dates on which they end; NaT without a target
    quantiles: dict[str, Tensor]  # model: (T, H, N, Q)
    variances: dict[str, Tensor]  # model: (T, H, N)
    fits: tuple[str, ...]  # outcome of each training of the network, in words
    mix: dict[str, Tensor]  # year: (H, K) coefficients of the variance terms
    scale: Tensor | None = None  # (N,) S of prices that may be negative, NaN = log: targets are changes of asinh(P / S)
    prices: Tensor | None = None  # (T, N) at the origins, with a scale

    @property
    def signed(self) -> tuple[str, ...]:
        """Symbols whose prices may be zero or negative."""
        scales = [] if self.scale is None else self.scale.tolist()
        return tuple(symbol for symbol, scale in zip(self.symbols, scales) if not math.isnan(scale))

    def price_changes(self, model: str) -> tuple[Tensor, Tensor]:  # (T, H, N), (T, H, N, Q)
        """Outcomes, and quantiles of a model, as changes of the price in its unit; for a backtest with a price scale.

        Args:
            model: a key of `quantiles`.

        Raises:
            ValueError: all symbols are in logs.
        """
        if self.prices is None or self.scale is None:
            raise ValueError("price_changes: a symbol must have prices that may be negative; got none")
        last = self.prices[:, None]  # (T, 1, N)
        outcomes = price_after(last, self.targets, self.scale) - last
        last = last.unsqueeze(-1)
        return outcomes, price_after(last, self.quantiles[model], self.scale.unsqueeze(-1)) - last

    @cached_property
    def scores(self) -> Scores:
        """Scores of every model at every horizon, see `score`."""
        return score(self)

    def between(self, first_year: int, last_year: int) -> "Backtest":
        """Select the origins of these years, both included; targets that end after `last_year` become NaN."""
        years, targets = calendar_years(self.origins), self.targets.clone()
        start, stop = int((years < first_year).sum()), int((years <= last_year).sum())
        targets[torch.from_numpy(calendar_years(self.target_dates) > last_year)] = torch.nan
        rows = slice(start, stop)
        return replace(
            self,
            origins=self.origins[rows],
            targets=targets[rows],
            target_dates=np.where(targets[rows].isnan().numpy(), np.datetime64("NaT", "D"), self.target_dates[rows]),
            quantiles={name: q[rows] for name, q in self.quantiles.items()},
            variances={name: v[rows] for name, v in self.variances.items()},
            prices=None if self.prices is None else self.prices[rows],
        )

    def to_pandas(self, models: Sequence[str] | None = None) -> "pd.DataFrame":
        """Convert to a long DataFrame: one row per origin, symbol, horizon, model and level.

        Columns: origin, symbol, horizon (rows), date (on which the target ends), model, level, forecast and target
        (cumulative log-returns; for prices that may be negative, changes of asinh(P / S), with S in `attrs["scale"]`).
        Date and target are missing where the target has not ended. Rows without a forecast are omitted.

        Args:
            models: names of models; all of them if None.

        Raises:
            ValueError: an unknown model.
        """
        import pandas as pd

        names = list(self.quantiles) if models is None else list(models)
        if unknown := [name for name in names if name not in self.quantiles]:
            raise ValueError(f"to_pandas: models must be among {', '.join(self.quantiles)}; got {', '.join(unknown)}")
        tables = []
        for name in names:
            valid = torch.isfinite(self.quantiles[name])
            t, h, n, q = (index.numpy() for index in valid.nonzero(as_tuple=True))
            columns = {
                "origin": self.origins[t].astype("datetime64[s]"),
                "symbol": pd.Categorical.from_codes(n, categories=pd.Index(self.symbols)),
                "horizon": np.array(self.horizons)[h],
                "date": self.target_dates[t, h, n].astype("datetime64[s]"),
                "model": pd.Categorical([name] * len(t), categories=names),
                "level": np.array(self.levels)[q],
                "forecast": self.quantiles[name][valid].numpy(),
                "target": self.targets.numpy()[t, h, n],
            }
            tables.append(pd.DataFrame(columns))
        table: pd.DataFrame = pd.concat(tables, ignore_index=True)
        if self.scale is not None:
            scales = zip(self.symbols, self.scale.tolist())
            table.attrs["scale"] = {symbol: scale for symbol, scale in scales if symbol in self.signed}
        return table

    def plot(self) -> Any:
        """Bar chart of the skill of each model by horizon, as a plotly Figure."""
        return plotly_figure(
            skill_chart(self.scores.rows), title=f"Skill by horizon, {self.scores.first} to {self.scores.last}"
        )

    def __repr__(self) -> str:
        span = f"{len(self.origins):,} origins {self.origins[0]} to {self.origins[-1]}"
        horizons = ", ".join(map(str, self.horizons))
        symbols, models = summarize_names(self.symbols), f"{len(self.quantiles)} models"
        return f"Backtest({self.model}, {symbols}; {span}; horizons {horizons}; {models})"


@operation("score")
@one_thread()
def score(backtest: Backtest, *, reference: str = "unconditional", model: str | None = None) -> Scores:
    """Score every model of a backtest on the rows that all of them forecast.

    Args:
        backtest: quantiles and targets.
        reference: model relative to which skill is measured.
        model: model that the Diebold-Mariano tests compare with the others; the tested model if None.

    Raises:
        ValueError: the prices are synthetic; `reference` or `model` is not in the backtest.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> score(forecast.backtest(wti, first_year=2016)).rows[0].model
        'har-garch'
    """
    check_not_synthetic(backtest)  # scenarios, which have no targets, are refused in these words too
    check_not_synthetic(backtest.targets, *backtest.symbols)
    model = backtest.model if model is None else model
    for argument, name in {"reference": reference, "model": model}.items():
        if name not in backtest.quantiles:
            raise ValueError(f"score: {argument} must be one of {', '.join(backtest.quantiles)}; got {name!r}")
    rows = []
    for i, horizon in enumerate(backtest.horizons):
        target, loss = _losses(backtest, i)
        quantiles, valid = {name: q[:, i] for name, q in backtest.quantiles.items()}, torch.isfinite(target)
        dates, overlap = int(valid.any(1).sum()), _overlap(backtest.origins, backtest.target_dates[:, i])
        for name, q in quantiles.items():
            mean = loss[name].nanmean().item()
            differences = (loss[model] - loss[name]).nanmean(1).numpy()
            dm, p = diebold_mariano(differences, overlap) if dates >= MIN_DATES else (math.nan, math.nan)
            rows.append(
                Score(
                    model=name,
                    horizon=horizon,
                    pinball=mean,
                    skill=100 * (1 - mean / loss[reference].nanmean().item()),
                    crps=2 * mean,
                    coverage90=inside(target, q, backtest.levels).nanmean().item(),
                    qlike=qlike(backtest.variances[name][:, i], target.square()).item(),
                    dm=dm,
                    dm_p=p,
                    n=int(valid.sum()),
                    dates=dates,
                )
            )
    return Scores(tuple(rows), str(backtest.origins[0]), str(backtest.origins[-1]))


def symbol_skills(backtest: Backtest, reference: str = "unconditional") -> Tensor:  # (H, N)
    """Skill of the tested model for each symbol alone, percent: losses of prices and of spreads have other scales.

    Args:
        backtest: quantiles and targets.
        reference: model relative to which skill is measured; without it NaN.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> result = forecast.backtest(wti, first_year=2016)
        >>> symbol_skills(result)[0, 0].item() == result.scores.rows[0].skill
        True
    """
    skills = []
    for i in range(len(backtest.horizons)):
        target, loss = _losses(backtest, i)
        before = loss[reference] if reference in loss else torch.full_like(target, torch.nan)
        skills.append(100 * (1 - loss[backtest.model].nanmean(0) / before.nanmean(0)))
    return torch.stack(skills)


def _losses(backtest: Backtest, i: int) -> tuple[Tensor, dict[str, Tensor]]:  # (T, N) each
    """Targets for which every model has a forecast, NaN elsewhere, and the pinball losses of the models."""
    quantiles = {name: q[:, i] for name, q in backtest.quantiles.items()}
    complete = torch.stack([torch.isfinite(q).all(-1) for q in quantiles.values()]).all(0)
    target, levels = backtest.targets[:, i], torch.tensor(backtest.levels, dtype=torch.double)
    target = torch.where(torch.isfinite(target) & complete, target, torch.nan)
    return target, {name: pinball(q, target, levels, reduction="none").mean(-1) for name, q in quantiles.items()}


def _overlap(origins: np.ndarray, target_dates: np.ndarray) -> int:  # (T,), (T, N)
    """Rows of the longest target: its horizon, or more if the symbol does not trade on every row."""
    ended = ~np.isnat(target_dates)
    rows = np.searchsorted(origins, target_dates) - np.arange(len(origins))[:, None]
    return int(rows[ended].max(initial=1))


def diebold_mariano(
    differences: np.ndarray,  # (T,) loss of A minus loss of B, averaged over the symbols of a date; NaN ignored
    horizon: int,
) -> tuple[float, float]:
    """Test that the mean loss difference is zero for overlapping targets: statistic and two-sided p-value.

    The long-run variance is the equal-weighted cosine estimate: with L_j = sqrt(2 / T) sum_t d_t cos(pi j (t - 1/2)
    / T), the mean of L_1^2 .. L_B^2, B = max(4, min(0.41 T^(2/3), R / 2h)) rounded down: targets that overlap by h
    leave about R / h independent windows in the R rows from the first date to the last, scored or not. The
    statistic has a t distribution with B degrees of freedom. Both are NaN if every difference is zero.

    Raises:
        ValueError: fewer than 5 finite differences.

    References:
        Diebold, Mariano (1995). Comparing predictive accuracy. J. Business & Economic Statistics 13(3).
        Lazarus, Lewis, Stock, Watson (2018). HAR inference. J. Business & Economic Statistics 36(4).
        doi:10.1080/07350015.2018.1506926.

    Example:
        >>> import numpy as np
        >>> t, p = diebold_mariano(np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 2.0, 1.0]), horizon=1)
        >>> round(t, 2), round(p, 4)
        (11.21, 0.0004)
    """
    with extra("forecast"):
        from scipy import stats

    dates = np.flatnonzero(np.isfinite(differences))
    d, T = differences[dates], len(dates)
    if T < MIN_DATES:
        raise ValueError(f"diebold_mariano: differences must be finite on at least {MIN_DATES} dates; got {T}")
    rows = dates[-1] - dates[0] + 1
    B = int(max(4, min(0.41 * T ** (2 / 3), rows / (2 * horizon))))
    t = np.arange(1, T + 1) - 0.5
    waves = np.cos(math.pi * np.arange(1, B + 1)[:, None] * t / T)
    variance = float(np.mean((math.sqrt(2 / T) * waves @ d) ** 2))
    if variance == 0:
        return math.nan, math.nan
    statistic = math.sqrt(T) * float(d.mean()) / math.sqrt(variance)
    return statistic, float(2 * stats.t.sf(abs(statistic), df=B))


def skill_chart(scores: Sequence[Score]) -> Chart:
    """Bar chart of the skill of each model by horizon, without the reference model."""
    models = list(dict.fromkeys(row.model for row in scores))
    horizons = list(dict.fromkeys(row.horizon for row in scores))
    skill = {(row.model, row.horizon): row.skill for row in scores}
    traces = [
        {
            "type": "bar",
            "name": escape(model),
            "x": [f"{h} rows" for h in horizons],
            "y": [chart_number(skill[model, h], 3) for h in horizons],
        }
        for model in models
        if any(skill[model, h] for h in horizons)
    ]
    layout = chart_layout(
        xaxis={"type": "category", "title": {"text": "horizon"}}, yaxis={"title": {"text": "skill, % of pinball loss"}}
    )
    return {"data": traces, "layout": {**layout, "barmode": "group", "colorway": list(COLORS)}}
