"""Correlation regimes

Soybeans are crushed into meal and oil, and the three prices usually move together. When one of them decouples, a spread
trade that looked hedged is not. The rolling correlation measures how closely they move; a new *regime* begins when the
correlation structure has shifted by more than a threshold within `lag` rows.

`ops.rolling_correlation` and `ops.correlation_regime` are causal and differentiable, so the gradient of the shift with
respect to the returns shows which rows caused it. (`nn.RollingCorrelation` combines both in one layer.)

By default the prices are monthly averages of the World Bank, a window is three years, and a regime lasts at least one.
Run the script on a file of your own with the daily front months SOYBEAN, SOYMEAL and SOYOIL
(`--data prices.csv --window 120 --lag 63`); `make docs CRUSH=prices.csv` draws the figure of this page from that file.
"""

from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor

from torchcommodity import data, ops
from torchcommodity.data import Panel
from torchcommodity.training import roll_adjusted_returns

PLOTLY = {"displayModeBar": False, "responsive": True}
CRUSH = {"SOYBEAN": "S", "SOYMEAL": "SM", "SOYOIL": "BO"}  # symbols and contract codes, for the roll calendar
MONTHLY_CRUSH = ["SOYBEANS", "SOYBEAN_MEAL", "SOYBEAN_OIL"]  # of the World Bank: no contracts, no rolls


class Regimes(NamedTuple):
    correlation: Tensor  # (T, pairs)
    shift: Tensor  # (T,)
    regime: Tensor  # (T,) int64


def read_prices(source: str) -> Panel:
    """The crush, of the World Bank or of front months, if the source has it; else all symbols."""
    panel = data.read(source)
    if CRUSH.keys() <= set(panel.symbols):
        return panel.select(CRUSH).with_contracts(CRUSH)
    return panel.select(MONTHLY_CRUSH) if set(MONTHLY_CRUSH) <= set(panel.symbols) else panel


def regimes(returns: Tensor, window: int, lag: int) -> Regimes:  # (T, N)
    # returns are missing on holidays of one market: a pair needs nine tenths of the window
    correlation = ops.rolling_correlation(returns, window, min_periods=window * 9 // 10, packed=True)
    return Regimes(correlation, *ops.correlation_regime(correlation, threshold=0.2, lag=lag, packed=True))


def sensitivity(returns: Tensor, window: int, lag: int, row: int) -> Tensor:  # (T, N) -> (T,)
    """Change of the shift at `row` if the returns of a row were one percent larger, for every row."""
    returns = returns.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(regimes(returns, window, lag).shift[row], returns)
    return (gradient * returns).nan_to_num().sum(-1).detach() / 100


def regime_starts(result: Regimes) -> list[int]:
    """Rows on which a new regime begins."""
    return (result.regime.diff(dim=-1).nonzero().flatten() + 1).tolist()


def plot(panel: Panel, result: Regimes) -> go.Figure:
    symbols, figure = panel.symbols, go.Figure()
    valid = result.correlation.isfinite().any(-1)
    dates = panel.dates[valid.numpy()]
    for column, (i, j) in enumerate(torch.triu_indices(len(symbols), len(symbols), offset=1).T.tolist()):
        figure.add_scatter(x=dates, y=result.correlation[valid, column], name=f"{symbols[i]}, {symbols[j]}")
    figure.add_scatter(x=dates, y=result.shift[valid], name="shift", line={"color": "#999", "width": 1})
    for row in regime_starts(result):
        figure.add_vline(x=str(panel.dates[row]), line={"color": "#bbb", "dash": "dot", "width": 1})
    return figure.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "Rolling correlations; dotted lines: a new regime", "font": {"size": 14}},
    )  # fmt: skip


def main(source: str = typer.Option("monthly", "--data"), window: int = 36, lag: int = 12, out: Path | None = None):
    panel = read_prices(source)
    returns = roll_adjusted_returns(panel)  # without roll gaps, which would distort the correlations
    result = regimes(returns, window, lag)
    starts = regime_starts(result)
    print(f"{', '.join(panel.symbols)}, {panel.dates[0]} to {panel.dates[-1]}: {len(starts) + 1} regimes")
    for provenance in dict.fromkeys(panel.provenance):
        print(f"  {provenance.series}: {provenance.publisher}; {provenance.location}")
    largest = max(starts, key=lambda row: result.shift[row])
    change = sensitivity(returns, window, lag, largest)
    print(f"The largest shift at a new regime is {result.shift[largest]:.2f}, on {panel.dates[largest]}.")
    print("Its change if the returns of one row were one percent larger:")
    for row in change.abs().topk(3).indices.tolist():
        print(f"  {panel.dates[row]}  {change[row]:+.4f}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        plot(panel, result).write_html(out / "01_correlation_regimes.html", include_plotlyjs="directory", config=PLOTLY)


if __name__ == "__main__":
    typer.run(main)
