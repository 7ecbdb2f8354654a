"""What a walk-forward showed, reduced to plain numbers: scores, calibration, coverage of every symbol."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch

from torchcommodity.forecast import Backtest, score


@dataclass(frozen=True)
class Evidence:
    """The walk-forward of one panel, as it can be kept in JSON.

    Args:
        model: the registered name of the model that was tested.
        first, last: dates of the first and the last origin.
        symbols: that took part.
        left_out: that did not, for want of history.
        rows: one record a model and horizon, as `forecast.Scores` has them; a number that does not exist is None.
        levels: nominal quantile levels `(Q,)`.
        calibration: horizon in rows -> share of targets at or below each quantile of the model `(Q,)`.
        coverage: symbol -> horizon in rows -> share of targets inside the outermost quantiles of the model.
        fits: what became of the network of each refit, in words.
    """

    model: str
    first: str
    last: str
    symbols: tuple[str, ...]
    left_out: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    levels: tuple[float, ...]
    calibration: dict[str, tuple[float | None, ...]]
    coverage: dict[str, dict[str, float | None]]
    fits: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Evidence":
        """What `to_json` wrote; ValueError where it is not that."""
        try:
            fields: dict[str, Any] = json.loads(text)
            fields |= {name: tuple(x) for name, x in fields.items() if isinstance(x, list)}
            return cls(**fields)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"Evidence: expected what to_json wrote; got {text[:60]!r}") from error

    def horizons(self) -> tuple[int, ...]:
        return tuple(int(h) for h in self.calibration)


def summarize(backtest: Backtest, left_out: tuple[str, ...] = ()) -> Evidence:
    """Score a backtest and keep what a report shows."""
    scores = score(backtest)
    quantiles = backtest.quantiles[backtest.model]  # (T, H, N, Q)
    known = torch.isfinite(backtest.targets) & torch.isfinite(quantiles).all(-1)
    below = (backtest.targets.unsqueeze(-1) <= quantiles) & known.unsqueeze(-1)
    inside = (backtest.targets >= quantiles[..., 0]) & (backtest.targets <= quantiles[..., -1]) & known
    calibration = below.sum((0, 2)) / known.sum((0, 2)).unsqueeze(-1)  # (H, Q)
    coverage = inside.sum(0) / known.sum(0)  # (H, N)
    return Evidence(
        backtest.model,
        scores.first,
        scores.last,
        backtest.symbols,
        left_out,
        tuple({name: finite(value) for name, value in asdict(row).items()} for row in scores.rows),
        backtest.levels,
        {str(h): tuple(map(finite, calibration[i].tolist())) for i, h in enumerate(backtest.horizons)},
        {
            symbol: {str(h): finite(coverage[i, n].item()) for i, h in enumerate(backtest.horizons)}
            for n, symbol in enumerate(backtest.symbols)
        },
        backtest.fits,
    )


def finite(value: Any) -> Any:
    """None for a number that JSON does not know; everything else as it is."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Outcome(NamedTuple):
    """Of one comparison: `win` or `loss`, and whether it is significant at 5 %."""

    word: str
    sure: bool


def outcome(row: dict[str, Any]) -> Outcome | None:
    """Whose loss is smaller; None for the model itself and for the same forecast."""
    if row["dm"] is None:
        return None
    return Outcome("win" if row["dm"] < 0 else "loss", row["dm_p"] < 0.05)


def describe_score(row: dict[str, Any], model: str) -> str:
    """One comparison in words, with its p-value; nothing for the model itself."""
    found = outcome(row)
    if found is None:
        return "" if row["model"] == model else "same forecast"
    p = "p < 0.001" if row["dm_p"] < 0.001 else f"p = {row['dm_p']:.3f}"
    return f"{found.word}, {p}" if found.sure else f"{found.word} or chance, {p}"


def tally(evidence: Evidence) -> str:
    """All comparisons of the table in one sentence."""
    others = [row for row in evidence.rows if row["model"] != evidence.model]
    found = [outcome(row) for row in others]
    wins, losses = ([one.sure for one in found if one and one.word == word] for word in ("win", "loss"))
    text = (
        f"Of {len(others)} comparisons, {evidence.model} has the smaller loss in {len(wins)} ({sum(wins)} significant "
        f"at 5 %) and the larger loss in {len(losses)} ({sum(losses)} significant)"
    )
    same = sum(one is None for one in found)
    return f"{text}; {same} are the same forecast." if same else f"{text}."
