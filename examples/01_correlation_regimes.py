"""Correlation regimes

Soybeans are crushed into meal and oil. While the crush works, the three prices move together; when one of them goes its
own way, a spread trade that was safe is not. How closely they move is a rolling correlation, and a *regime* ends when
the structure of correlations has shifted by more than a threshold within a quarter.

`nn.RollingCorrelation` goes from prices to both in one causal pass, and it is differentiable. So the shift can be asked
which days made it: its gradient by the returns names them.

The prices of the crush may not be passed on with this library, so it runs on a file of yours with the columns SOYBEAN,
SOYMEAL and SOYOIL (`--data prices.csv`), or on monthly prices that the IMF publishes
(`--data fred:PSOYBUSDM,PSMEAUSDM,PSOILUSDM --window 36 --lag 12`). Without a file it runs on what is there offline:
crude oil and two stock indices.
"""

from pathlib import Path

import plotly.graph_objects as go
import torch
import typer
from torch import Tensor

from torchcommodity import data, nn, ops
from torchcommodity.data import Panel
from torchcommodity.nn.rolling_correlation import Correlations

PLAIN = {"displayModeBar": False, "responsive": True}
CRUSH = ("SOYBEAN", "SOYMEAL", "SOYOIL")


def prices(source: str) -> Panel:
    """The crush if the source has it, all that it has otherwise; of what is embedded, the three long series."""
    panel = data.load(source).panel
    if set(CRUSH) <= set(panel.symbols):
        return panel.select(CRUSH)
    return panel.select(["WTI", "SP500", "NASDAQ"]).between("1999-01-04") if source == "embedded" else panel


def regimes(panel: Panel, window: int, lag: int) -> Correlations:
    # a holiday of one market is a missing price: a pair needs nine tenths of the window
    layer = nn.RollingCorrelation(window, min_periods=window * 9 // 10, lag=lag, threshold=0.2, packed=True)
    return layer(panel.values.plain())


def days_behind(panel: Panel, window: int, lag: int, row: int) -> Tensor:  # (T,)
    """By how much a day's returns, a per cent larger each, would change the shift at a row."""
    returns = ops.log_returns(panel.values.plain()).requires_grad_()
    correlation = ops.rolling_correlation(returns, window, min_periods=window * 9 // 10, packed=True)
    shift, _ = ops.correlation_regime(correlation, lag=lag, packed=True)
    (slope,) = torch.autograd.grad(shift[row], returns)
    return (slope * returns).nan_to_num().sum(-1).detach() / 100


def figure(panel: Panel, found: Correlations) -> go.Figure:
    names, drawn = panel.symbols, go.Figure()
    for column, (i, j) in enumerate(torch.triu_indices(len(names), len(names), offset=1).T.tolist()):
        drawn.add_scatter(x=panel.dates, y=found.correlation[:, column], name=f"{names[i]}, {names[j]}")
    drawn.add_scatter(x=panel.dates, y=found.shift, name="shift", line={"color": "#999", "width": 1})
    for row in starts(found):
        drawn.add_vline(x=str(panel.dates[row]), line={"color": "#bbb", "dash": "dot", "width": 1})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "rolling correlations; dotted: a regime ends", "font": {"size": 14}},
    )  # fmt: skip


def starts(found: Correlations) -> list[int]:
    """The rows on which a new regime begins."""
    return (found.regime.diff(dim=-1).nonzero().flatten() + 1).tolist()


def main(source: str = typer.Option("embedded", "--data"), window: int = 120, lag: int = 63, out: Path | None = None):
    panel = prices(source)
    found = regimes(panel, window, lag)
    print(f"{', '.join(panel.symbols)}, {panel.dates[0]} to {panel.dates[-1]}: {len(starts(found)) + 1} regimes")
    for mark in dict.fromkeys(panel.provenance):
        print(f"  {mark.series}: {mark.publisher}; {mark.location}")
    largest = max(starts(found), key=lambda row: found.shift[row])
    behind = days_behind(panel, window, lag, largest)
    print(f"the largest shift at a border is {found.shift[largest]:.2f}, on {panel.dates[largest]}; it would change by")
    for row in behind.abs().topk(3).indices.tolist():
        print(f"  {behind[row]:+.4f} had the returns of {panel.dates[row]} been one per cent larger")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure(panel, found).write_html(out / "01_correlation_regimes.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
