"""Correlation regimes

Soybeans are crushed into meal and oil. While the crush works, the three prices move together; when one of them goes its
own way, a spread trade that was safe is not. How closely they move is a rolling correlation, and a *regime* ends when
the structure of correlations has shifted by more than a threshold within a quarter.

`ops.rolling_correlation` and `ops.correlation_regime` are causal, and they are differentiable. So the shift can be
asked which days made it: its gradient by the returns names them. (`nn.RollingCorrelation` is both in one layer.)

The prices of the crush may not be passed on with this library, so it runs on a file of yours with the front months
SOYBEAN, SOYMEAL and SOYOIL (`--data prices.csv`), or on monthly prices that the IMF publishes
(`--data fred:PSOYBUSDM,PSMEAUSDM,PSOILUSDM --window 36 --lag 12`). Without a file it runs on what is there offline:
crude oil and two stock indices. `make docs CRUSH=prices.csv` draws this page's figure from your file.
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

PLAIN = {"displayModeBar": False, "responsive": True}
CRUSH = {"SOYBEAN": "S", "SOYMEAL": "SM", "SOYOIL": "BO"}  # and the codes of their futures, which know when they roll


class Regimes(NamedTuple):
    correlation: Tensor  # (T, pairs)
    shift: Tensor  # (T,)
    regime: Tensor  # (T,) int64


def prices(source: str) -> Panel:
    """The crush if the source has it, all that it has otherwise; of what is embedded, the three long series."""
    panel = data.read(source)
    if CRUSH.keys() <= set(panel.symbols):
        return panel.select(CRUSH).with_contracts(CRUSH)
    return panel.select(["WTI", "SP500", "NASDAQ"]).between("1999-01-04") if source == "embedded" else panel


def regimes(returns: Tensor, window: int, lag: int) -> Regimes:  # (T, N)
    # a holiday of one market is a missing return: a pair needs nine tenths of the window
    correlation = ops.rolling_correlation(returns, window, min_periods=window * 9 // 10, packed=True)
    return Regimes(correlation, *ops.correlation_regime(correlation, threshold=0.2, lag=lag, packed=True))


def days_behind(returns: Tensor, window: int, lag: int, row: int) -> Tensor:  # (T, N) -> (T,)
    """By how much a day's returns, a per cent larger each, would change the shift at a row."""
    returns = returns.clone().requires_grad_()
    (slope,) = torch.autograd.grad(regimes(returns, window, lag).shift[row], returns)
    return (slope * returns).nan_to_num().sum(-1).detach() / 100


def figure(panel: Panel, found: Regimes) -> go.Figure:
    names, drawn = panel.symbols, go.Figure()
    known = found.correlation.isfinite().any(-1)  # the files of others begin at other dates
    dates = panel.dates[known.numpy()]
    for column, (i, j) in enumerate(torch.triu_indices(len(names), len(names), offset=1).T.tolist()):
        drawn.add_scatter(x=dates, y=found.correlation[known, column], name=f"{names[i]}, {names[j]}")
    drawn.add_scatter(x=dates, y=found.shift[known], name="shift", line={"color": "#999", "width": 1})
    for row in starts(found):
        drawn.add_vline(x=str(panel.dates[row]), line={"color": "#bbb", "dash": "dot", "width": 1})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "rolling correlations; dotted: a regime ends", "font": {"size": 14}},
    )  # fmt: skip


def starts(found: Regimes) -> list[int]:
    """The rows on which a new regime begins."""
    return (found.regime.diff(dim=-1).nonzero().flatten() + 1).tolist()


def main(source: str = typer.Option("embedded", "--data"), window: int = 120, lag: int = 63, out: Path | None = None):
    panel = prices(source)
    returns = roll_adjusted_returns(panel)  # the gap of a roll is no return, and would be a correlation
    found = regimes(returns, window, lag)
    print(f"{', '.join(panel.symbols)}, {panel.dates[0]} to {panel.dates[-1]}: {len(starts(found)) + 1} regimes")
    for mark in dict.fromkeys(panel.provenance):
        print(f"  {mark.series}: {mark.publisher}; {mark.location}")
    largest = max(starts(found), key=lambda row: found.shift[row])
    behind = days_behind(returns, window, lag, largest)
    print(f"the largest shift at a border is {found.shift[largest]:.2f}, on {panel.dates[largest]}; it would change by")
    for row in behind.abs().topk(3).indices.tolist():
        print(f"  {behind[row]:+.4f} had the returns of {panel.dates[row]} been one per cent larger")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure(panel, found).write_html(out / "01_correlation_regimes.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
