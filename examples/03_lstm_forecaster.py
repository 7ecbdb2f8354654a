"""An LSTM forecaster without scaling leakage

How volatile will oil be over the next month? The LSTM reads a look-back window, the last 63 rows of three volatilities,
and predicts the logarithm of the volatility of the next 21 rows.

Network inputs are standardized, and this is where many tutorials leak: the scaler is fitted on the whole file, so
that a forecast of 2008 depends on the volatility of 2016. The test error hardly shows it. A direct test does: **does a
forecast of 2008 change when later years are added to the file?** With a scaler fitted on the training rows it does not,
bit for bit.

The scaler is a part of the module, so that it is saved and served with it. The last lines compare with a linear
regression on the same three volatilities, which is better: a network is not an improvement by default.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor, nn

from torchcommodity import data, ops
from torchcommodity.data import Panel, Split
from torchcommodity.nn import LSTM, StandardScaler

PLOTLY = {"displayModeBar": False, "responsive": True}
LOOKBACK, HORIZON, WINDOWS = 63, 21, (5, 21, 63)


def features(prices: Tensor) -> Tensor:  # (T, 1) -> (T, F = 3)
    """Log-volatilities per row over a week, a month and a quarter; NaN during warm-up."""
    returns = ops.log_returns(prices)
    # markets close on different days: three fifths of a window are enough
    return torch.cat([ops.rolling_std(returns, w, min_periods=w * 3 // 5).clamp(min=1e-6).log() for w in WINDOWS], -1)


def targets(prices: Tensor) -> Tensor:  # (T, 1) -> (T,)
    """Log-volatility of the rows t + 1 ... t + 21; NaN where they lie beyond the last row."""
    month = features(prices)[:, 1]
    return torch.cat([month[HORIZON:], month.new_full((HORIZON,), torch.nan)])


class Forecaster(nn.Module):
    """Features (T, F) to log-volatilities (B,), each from the look-back window that ends at its origin."""

    def __init__(self, scaler_rows: Tensor) -> None:  # (T, F): rows that the scaler is fitted on
        super().__init__()
        self.scaler = StandardScaler().fit(scaler_rows)
        self.lstm = LSTM(len(WINDOWS), 8, batch_first=True, dtype=torch.double)
        self.head = nn.Linear(8, 1, dtype=torch.double)

    def forward(self, rows: Tensor, origins: Tensor) -> Tensor:  # (T, F), (B,) -> (B,)
        windows = self.scaler(rows).unfold(0, LOOKBACK, 1)[origins - LOOKBACK + 1].mT  # (B, LOOKBACK, F)
        _, (h, _) = self.lstm(windows)
        return self.scaler.center[1] + self.scaler.scale[1] * self.head(h[-1]).squeeze(-1)


def train(model: Forecaster, rows: Tensor, target: Tensor, origins: Tensor) -> Forecaster:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(12):
        for batch in origins[torch.randperm(len(origins))].split(128):
            optimizer.zero_grad()
            (model(rows, batch) - target[batch]).square().mean().backward()
            optimizer.step()
    return model.eval()


def fit(panel: Panel, split: Split, leak: bool) -> Forecaster:
    """Train on the training rows; with a leak, the scaler is fitted on all rows."""
    torch.manual_seed(0)
    rows, target = features(panel.values.plain()), targets(panel.values.plain())
    train_rows = slice(split.train.start, split.train.stop)
    origins = torch.arange(2 * LOOKBACK, split.train.stop, 5)  # targets of neighboring rows overlap
    origins = origins[target[origins].isfinite()]
    return train(Forecaster(rows if leak else rows[train_rows]), rows, target, origins)


def regression(panel: Panel, split: Split) -> Tensor:
    """Linear regression on the three volatilities of the last row (HAR, Corsi 2009)."""
    rows, target = features(panel.values.plain()), targets(panel.values.plain())
    rows = torch.cat([rows, torch.ones_like(rows[:, :1])], -1)
    origins = torch.arange(2 * LOOKBACK, split.train.stop)
    origins = origins[target[origins].isfinite()]
    weights = torch.linalg.lstsq(rows[origins], target[origins, None]).solution
    return (rows[split.test.start :] @ weights).squeeze(-1)


@torch.no_grad()
def predict(model: Forecaster, panel: Panel, test: range) -> Tensor:
    return model(features(panel.values.plain()), torch.arange(test.start, test.stop))


def plot(panel: Panel, test: range, forecast: Tensor, target: Tensor) -> go.Figure:
    dates, figure = panel.dates[test.start : test.stop], go.Figure()
    annualized = 100 * 252**0.5
    figure.add_scatter(x=dates, y=annualized * target.exp(), name="realized", line={"color": "#bbb", "width": 1})
    figure.add_scatter(x=dates, y=annualized * forecast.exp(), name="forecast", line={"color": "#4c78a8"})
    return figure.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "Volatility of the next 21 rows, annualized, in percent", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("embedded", "--data"), symbol: str = "WTI", out: Path | None = None):
    torch.set_num_threads(1)  # steps are too small for more threads
    panel = data.read(source, [symbol])
    split = data.walk_forward(panel.dates, horizon=HORIZON, test_rows=len(panel))[0]
    first, middle = panel.dates[split.test.start], panel.dates[split.test.start + len(split.test) // 2]
    provenance = panel.provenance[0]
    print(f"{symbol}, {panel.dates[0]} to {panel.dates[-1]}; {provenance.publisher}; {provenance.location}")
    print(f"trained on data through {panel.dates[split.train.stop - 1 + HORIZON]}, tested from {first}\n")

    earlier, forecasts = panel.between(None, middle), {}
    for name, leak in {"training rows": False, "all rows": True}.items():
        before, after = fit(earlier, split, leak), fit(panel, split, leak)
        common = range(split.test.start, len(earlier))
        change = (predict(before, panel, common) - predict(after, panel, common)).expm1().abs().max()
        effect = f"change by up to {change:.1%}" if change else "stay bit for bit the same"
        print(f"scaler fitted on {name}: forecasts to {middle} {effect} when later years are added")
        forecasts[f"LSTM, scaled by {name}"] = predict(after, panel, split.test)

    target = targets(panel.values.plain())[split.test.start :]
    forecasts["regression (HAR)"] = regression(panel, split)
    forecasts["last month's volatility"] = features(panel.values.plain())[split.test.start :, 1]
    print("\nmean squared error of the log-volatility")
    for name, forecast in forecasts.items():
        print(f"    {name:30}{(forecast - target).square().nanmean():.4f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure = plot(panel, split.test, forecasts["LSTM, scaled by training rows"], target)
        figure.write_html(out / "03_lstm_forecaster.html", include_plotlyjs="directory", config=PLOTLY)


if __name__ == "__main__":
    typer.run(main)
