"""An LSTM forecaster: look-back windows, and scaling that does not leak

How far will oil move in the next month? The LSTM reads a look-back window, the last 63 rows of three volatilities, and
says the logarithm of the volatility of the 21 rows to come.

Networks want inputs of mean 0 and deviation 1, and here most tutorials leak: the scaler is fitted on the whole file, so
a forecast of 2008 knows how wild 2016 will be. It looks like nothing, for the error hardly moves. So we do not look at
the error. We ask what a forecaster must be able to answer: **does a forecast of 2008 change when later years are
recorded?** With a scaler fitted on the rows before the test it does not, not in one bit.

The scaler is a part of the module, in buffers: what is saved and served is what was fitted. The last lines compare with
a regression on the same three numbers. It is better: a small network is not a reason to expect more.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor, nn

from torchcommodity import data, ops
from torchcommodity.data import Panel, Split
from torchcommodity.nn import LSTM

PLAIN = {"displayModeBar": False, "responsive": True}
LOOKBACK, HORIZON, TERMS = 63, 21, (5, 21, 63)


def features(prices: Tensor) -> Tensor:  # (T, 1) -> (T, F = 3)
    """Log-volatilities per row over a week, a month and a quarter; NaN during warm-up."""
    returns = ops.log_returns(prices)
    # markets close on different days: three fifths of a window will do
    return torch.cat([ops.rolling_std(returns, w, min_periods=w * 3 // 5).clamp(min=1e-6).log() for w in TERMS], -1)


def target(prices: Tensor) -> Tensor:  # (T, 1) -> (T,)
    """Log-volatility of the rows t + 1 ... t + 21; NaN where these are not over."""
    month = features(prices)[:, 1]
    return torch.cat([month[HORIZON:], month.new_full((HORIZON,), torch.nan)])


class Forecaster(nn.Module):
    """Features (T, F) to a log-volatility (T,), each row from its look-back window."""

    def __init__(self, fitted_on: Tensor) -> None:  # (T, F): the rows that the scaler may see
        super().__init__()
        known = fitted_on[fitted_on.isfinite().all(-1)]
        self.register_buffer("mean", known.mean(0))
        self.register_buffer("deviation", known.std(0))
        self.lstm = LSTM(len(TERMS), 8, batch_first=True, dtype=torch.double)
        self.head = nn.Linear(8, 1, dtype=torch.double)

    def forward(self, rows: Tensor, origins: Tensor) -> Tensor:  # (T, F), (B,) -> (B,)
        scaled = (rows - self.mean) / self.deviation
        windows = scaled.unfold(0, LOOKBACK, 1)[origins - LOOKBACK + 1].mT  # (B, LOOKBACK, F), ending at the origin
        _, (h, _) = self.lstm(windows)
        return self.mean[1] + self.deviation[1] * self.head(h[-1]).squeeze(-1)


def train(model: Forecaster, rows: Tensor, answers: Tensor, origins: Tensor) -> Forecaster:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(12):
        for batch in origins[torch.randperm(len(origins))].split(128):
            optimizer.zero_grad()
            (model(rows, batch) - answers[batch]).square().mean().backward()
            optimizer.step()
    return model.eval()


def fit(panel: Panel, split: Split, leak: bool) -> Forecaster:
    """A forecaster trained on the rows before the test; with a leak, scaled by all rows there are."""
    torch.manual_seed(0)
    rows, answers = features(panel.values.plain()), target(panel.values.plain())
    past = slice(split.train.start, split.train.stop)
    origins = torch.arange(2 * LOOKBACK, split.train.stop, 5)  # targets of neighboring rows overlap
    origins = origins[answers[origins].isfinite()]
    return train(Forecaster(rows if leak else rows[past]), rows, answers, origins)


def linear(panel: Panel, split: Split) -> Tensor:
    """The same without a network: a regression on the three volatilities of the last row (Corsi's HAR)."""
    rows, answers = features(panel.values.plain()), target(panel.values.plain())
    rows = torch.cat([rows, torch.ones_like(rows[:, :1])], -1)
    past = torch.arange(2 * LOOKBACK, split.train.stop)
    past = past[answers[past].isfinite()]
    weights = torch.linalg.lstsq(rows[past], answers[past, None]).solution
    return (rows[split.test.start :] @ weights).squeeze(-1)


@torch.no_grad()
def forecasts(model: Forecaster, panel: Panel, test: range) -> Tensor:
    return model(features(panel.values.plain()), torch.arange(test.start, test.stop))


def figure(panel: Panel, test: range, ours: Tensor, answers: Tensor) -> go.Figure:
    dates, drawn = panel.dates[test.start : test.stop], go.Figure()
    per_year = 100 * 252**0.5
    drawn.add_scatter(x=dates, y=per_year * answers.exp(), name="came true", line={"color": "#bbb", "width": 1})
    drawn.add_scatter(x=dates, y=per_year * ours.exp(), name="forecast a month before", line={"color": "#4c78a8"})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "volatility of the next 21 rows, per cent per year", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), symbol: str = "WTI", out: Path | None = None):
    torch.set_num_threads(1)  # a step is so small that threads would wait for each other
    panel = data.read(source, [symbol])
    split = data.walk_forward(panel.dates, horizon=HORIZON, test_rows=len(panel))[0]
    first, middle = panel.dates[split.test.start], panel.dates[split.test.start + len(split.test) // 2]
    mark = panel.provenance[0]
    print(f"{symbol}, {panel.dates[0]} to {panel.dates[-1]}; {mark.publisher}; {mark.location}")
    print(f"trained on what was known on {panel.dates[split.train.stop - 1 + HORIZON]}, tested from {first} on\n")

    earlier, found = panel.between(None, middle), {}  # what was recorded by then
    for name, leak in {"past rows": False, "all rows": True}.items():
        then, now = fit(earlier, split, leak), fit(panel, split, leak)
        both = range(split.test.start, len(earlier))
        change = (forecasts(then, panel, both) - forecasts(now, panel, both)).expm1().abs().max()
        moved = f"by up to {change:.1%}" if change else "not in one bit"
        print(f"scaler fitted on {name}: forecasts to {middle} change {moved} when later years are recorded")
        found[f"LSTM, scaled by {name}"] = forecasts(now, panel, split.test)

    answers = target(panel.values.plain())[split.test.start :]
    found["regression (HAR)"] = linear(panel, split)
    found["as the last month"] = features(panel.values.plain())[split.test.start :, 1]
    print("\nmean squared error of the log-volatility")
    for name, forecast in found.items():
        print(f"    {name:26}{(forecast - answers).square().nanmean():.4f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        drawn = figure(panel, split.test, found["LSTM, scaled by past rows"], answers)
        drawn.write_html(out / "03_lstm_forecaster.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
