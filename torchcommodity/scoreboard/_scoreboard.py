"""Scores of every model of a scoreboard, and their ranking."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchcommodity.forecast import Backtest, inside, score
from torchcommodity.losses import pinball
from torchcommodity.risk import model_confidence_set, pinball_by_date
from torchcommodity.scoreboard._task import REFERENCE, Task

if TYPE_CHECKING:
    import pandas as pd

MAX_MISSING = 0.02  # share of the forecasts of a horizon that may be missing
MIN_BLOCKS = 20  # of a model confidence set: its bootstrap of few blocks finds differences that are none
DIGITS = 12  # decimals of losses that are compared
INTERVALS = ((0.25, 0.75), (0.10, 0.90), (0.05, 0.95))  # 50, 80 and 90 %

EntrySource = Literal["reference", "default", "baseline", "model", "function", "file"]


@dataclass(frozen=True)
class Entry:
    """A model of the scoreboard.

    Args:
        name: of the model.
        source: "reference", "default" (the package's model), "baseline" of the package, "model" that was fitted here,
            "function" that was run here, or "file" of quantiles, of which nobody can check when they were made.
        note: why there are no scores, in words; or "".
    """

    name: str
    source: EntrySource
    note: str = ""


@dataclass(frozen=True)
class EntryScore:
    """One model at one horizon, over all scored forecasts of the task; NaN where the model is not scored."""

    model: str
    horizon: int  # rows
    pinball: float  # mean over the levels, in log-return
    skill: float  # reduction of the reference's pinball loss, percent
    p_reference: float  # two-sided p-value of the Diebold-Mariano test against the reference
    gain: float  # reduction of the default model's pinball loss, percent
    p_default: float  # p-value of the Diebold-Mariano test against the default model
    p_best: float  # p-value of the model confidence set, NaN below 20 blocks; at most 0.10: worse than the best model
    coverage50: float  # share of outcomes inside the 50 % interval
    coverage80: float
    coverage90: float
    share: float  # of the forecasts that the model made itself; the rest are the reference's
    n: int  # number of targets
    dates: int  # number of origins with a target


class RankedEntry(NamedTuple):
    """A model in the ranking, as every table of it shows it."""

    place: int | None  # from 1; None where the model is not scored at every horizon
    entry: Entry
    scores: tuple[EntryScore | None, ...]  # of each horizon
    mean_skill: float  # percent; NaN where the model is not scored at every horizon


@dataclass(frozen=True, eq=False, repr=False)
class Scoreboard:
    """Scores of every model on one task."""

    task: Task
    default: str  # name of the package's model
    entries: tuple[Entry, ...]
    scores: tuple[EntryScore, ...]
    symbol_skills: dict[str, Tensor]  # model: (H, N) reduction of the reference's pinball loss, percent

    def score(self, model: str, horizon: int) -> EntryScore | None:
        """The score of a model at a horizon; None if it has none."""
        return next((s for s in self.scores if (s.model, s.horizon) == (model, horizon)), None)

    def mean_skill(self, model: str) -> float:
        """Mean of the skills at all horizons, percent; NaN if the model is not scored at one of them."""
        skills = [s.skill for h in self.task.horizons if (s := self.score(model, h)) is not None]
        return sum(skills) / len(skills) if len(skills) == len(self.task.horizons) else math.nan

    def ranking(self) -> tuple[Entry, ...]:
        """The models by mean skill; those that are not scored at every horizon come last."""

        def place(entry: Entry) -> tuple[bool, float]:
            skill = self.mean_skill(entry.name)
            return math.isnan(skill), -skill if math.isfinite(skill) else 0.0

        return tuple(sorted(self.entries, key=place))

    def ranked_entries(self) -> tuple[RankedEntry, ...]:
        """The `ranking` with place, scores and mean skill of each model."""
        rows = []
        for place, entry in enumerate(self.ranking(), 1):
            mean, scores = self.mean_skill(entry.name), (self.score(entry.name, h) for h in self.task.horizons)
            rows.append(RankedEntry(None if math.isnan(mean) else place, entry, tuple(scores), mean))
        return tuple(rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a DataFrame with one row per model and horizon: the fields of `EntryScore`."""
        import pandas as pd

        columns = [field.name for field in fields(EntryScore)]
        table: pd.DataFrame = pd.DataFrame([asdict(row) for row in self.scores], columns=columns)
        return table

    def to_markdown(self) -> str:
        """Convert to Markdown: what was scored, then the skill of each model by horizon, with p-value and coverage."""
        task, count = self.task, len(self.task.horizons)
        heads = ["", "model", *task.horizon_names().values(), "mean", "inside 90 %"]
        lines = [heads, ["---:", "---", *["---:"] * (count + 2)]]
        for place, entry, scores, mean in self.ranked_entries():
            cells = [entry.note, *[""] * (count - 1)]
            if any(scores):
                cells = []
                for score in scores:
                    p = "" if score is None or math.isnan(score.p_reference) else f" (p {score.p_reference:.2f})"
                    cells.append("not scored" if score is None else f"{score.skill:+.2f}{p}")
            coverage = ", ".join(f"{100 * s.coverage90:.0f}" for s in scores if s is not None)
            lines.append([f"{place or ''}", entry.name, *cells, f"{mean:+.2f}" if place else "", coverage])
        return "\n".join(
            [
                f"**{task.name}**: {len(task.panel.symbols)} symbols, {len(task.rows)} origins {task.origins[0]} to "
                f"{task.origins[-1]}, fingerprint `{task.fingerprint[:16]}`. Skill in percent of the pinball loss of "
                f"`{REFERENCE}`, and the p-value of the difference.",
                "",
                *(f"| {' | '.join(cells)} |" for cells in lines),
            ]
        )

    def __repr__(self) -> str:
        ranking = ", ".join(f"{e.name} {self.mean_skill(e.name):+.2f}" for e in self.ranking() if not e.note)
        return f"Scoreboard({self.task.track}; mean skill in percent: {ranking})"


def score_entries(task: Task, entries: tuple[Entry, ...], forecasts: Mapping[str, Tensor], default: str) -> Scoreboard:
    """Score the forecasts `(O, H, N, Q)` of all models on all targets of a task.

    A missing forecast is replaced by the reference's, so that a model gains nothing by leaving one out. A model that
    misses more than 2 % of the forecasts of a horizon is not scored there.

    Raises:
        ValueError: the reference or the default model misses a forecast.
    """
    scored = torch.isfinite(task.targets)  # (O, H, N)
    own = {name: torch.isfinite(q).all(-1) & scored for name, q in forecasts.items()}
    for name in (REFERENCE, default):
        if not own[name][scored].all():
            raise ValueError(
                f"scoreboard: {name} must have every forecast; it misses {int((scored & ~own[name]).sum())}"
            )
    shares = {name: own[name].sum((0, 2)) / scored.sum((0, 2)) for name in forecasts}
    complete = {name: torch.where(own[name][..., None], q, forecasts[REFERENCE]) for name, q in forecasts.items()}
    rows, skills = [], {name: torch.full(task.targets.shape[1:], torch.nan) for name in forecasts}
    for i, _ in enumerate(task.horizons):
        present = {name: q[:, i] for name, q in complete.items() if shares[name][i] >= 1 - MAX_MISSING}
        for row, skill in _score_horizon(task, i, present, default, shares):
            rows.append(row)
            skills[row.model][i] = skill
    noted_entries = []
    for entry in entries:
        if entry.name not in own:
            noted_entries.append(entry)
            continue
        notes = []  # on the horizons that are not scored, with the first forecast that is missing
        for i, (h, name) in enumerate(task.horizon_names().items()):
            if (share := shares[entry.name][i].item()) < 1 - MAX_MISSING:
                o, n = map(int, (scored & ~own[entry.name])[:, i].nonzero()[0])
                first = f"the first missing one is {task.origins[o]}, {task.panel.symbols[n]}, {h}"
                count = "none" if share == 0 else f"{100 * share:.1f} % of the forecasts, {first}"
                notes.append(f"{name}: {count}")
        noted_entries.append(Entry(entry.name, entry.source, f"not scored at {'; '.join(notes)}" if notes else ""))
    return Scoreboard(task, default, tuple(noted_entries), tuple(rows), skills)


def _score_horizon(
    task: Task, i: int, quantiles: Mapping[str, Tensor], default: str, shares: Mapping[str, Tensor]
) -> Iterator[tuple[EntryScore, Tensor]]:
    """Score and skill by symbol `(N,)` of each model, whose quantiles are (O, N, Q), at horizon number i."""
    target, levels = task.targets[:, i], torch.tensor(task.levels, dtype=torch.double)
    horizon = slice(i, i + 1)
    one_horizon = Backtest(
        model=REFERENCE,
        origins=task.origins,
        symbols=task.panel.symbols,
        horizons=task.horizons[horizon],
        levels=task.levels,
        targets=task.targets[:, horizon],
        target_dates=task.target_dates[:, horizon],
        quantiles={name: q[:, None] for name, q in quantiles.items()},
        variances={name: torch.full_like(task.targets[:, horizon], torch.nan) for name in quantiles},
        fits=(),
        mix={},
    )
    references = {row.model: row for row in score(one_horizon, reference=REFERENCE).rows}
    defaults = {row.model: row for row in score(one_horizon, reference=default, model=default).rows}
    best = _confidence(one_horizon)
    loss = {name: pinball(q, target, levels, reduction="none").mean(-1).nanmean(0) for name, q in quantiles.items()}
    for name, q in quantiles.items():
        first, second = references[name], defaults[name]
        coverage50, coverage80, coverage90 = (
            inside(target, q, task.levels, interval).nanmean().item() for interval in INTERVALS
        )
        row = EntryScore(
            model=name,
            horizon=task.horizons[i],
            pinball=first.pinball,
            skill=first.skill,
            p_reference=first.dm_p,
            gain=second.skill,
            p_default=second.dm_p,
            p_best=best.get(name, math.nan),
            coverage50=coverage50,
            coverage80=coverage80,
            coverage90=coverage90,
            share=shares[name][i].item(),
            n=first.n,
            dates=first.dates,
        )
        yield row, 100 * (1 - loss[name] / loss[REFERENCE])


def _confidence(backtest: Backtest) -> dict[str, float]:
    """P-value of each model in the model confidence set, with blocks of the longest target; none of too few blocks."""
    losses, ends = pinball_by_date(backtest, backtest.horizons[0]).dropna(), backtest.target_dates[:, 0]
    rows = np.searchsorted(backtest.origins, ends) - np.arange(len(ends))[:, None]
    block = int(rows[~np.isnat(ends)].max())
    if len(losses) < MIN_BLOCKS * block:
        return {}
    # rounded, so that a file and a function that agree have equal losses
    return model_confidence_set(losses.round(DIGITS), block=block).p_values
