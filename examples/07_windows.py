"""Windows, scaler, DataLoader and LSTM in forty lines

Five energy prices, four horizons: an LSTM reads the log-returns of the last 60 rows and predicts those of the next
week, month, quarter and half-year. `WindowDataset` cuts the windows; its `split` keeps the targets of the training
windows out of the validation rows, and those of the validation windows out of the test rows. The scalers are fitted on
the training windows and are part of the module. Forty lines do this, not counting imports and figure;
[the how-to guide](../how-to/windows.md) goes through each step.

The loss is the squared error in units of the training targets' deviation. Before training, the network predicts the
mean of the training targets: epoch 0 is the baseline. Training beats it on the training rows, and nowhere else: these
returns can hardly be predicted from earlier ones. [Their volatility can](03_lstm_forecaster.md).
"""

from pathlib import Path

import pandas as pd
import plotly.express as px
import torch
import typer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from torchcommodity import data, losses, ops
from torchcommodity.data import Window, WindowDataset
from torchcommodity.nn import LSTM, StandardScaler

SYMBOLS = ["WTI", "BRENT", "HENRY_HUB", "HEATING_OIL_NYH", "PROPANE_MB"]


class Forecaster(nn.Module):
    def __init__(self, train: WindowDataset) -> None:
        super().__init__()
        self.shape = train.targets.shape[1:]  # (H, N)
        self.scaler = StandardScaler().fit(train.features)
        self.target_scaler = StandardScaler().fit(train.targets.flatten(1))
        self.lstm = LSTM(self.shape[1], 16, batch_first=True)
        self.head = nn.Linear(16, self.shape.numel())
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, returns: Tensor) -> Tensor:  # (B, L, N) -> (B, H, N)
        _, (h, _) = self.lstm(self.scaler(returns).nan_to_num())  # a missing return counts as the mean
        return self.target_scaler.inverse_transform(self.head(h[-1])).unflatten(-1, self.shape)


def loss(model: Forecaster, batch: Window) -> Tensor:
    scale = model.target_scaler.scale.view(model.shape)
    return losses.scaled_mse_loss(model(batch.inputs), batch.targets, scale)  # leaves out targets that are NaN


@torch.no_grad()
def evaluate(model: Forecaster, parts: dict[str, WindowDataset]) -> dict[str, float]:
    return {name: loss(model, next(iter(DataLoader(part, len(part))))).item() for name, part in parts.items()}


def main(source: str = typer.Option("embedded", "--data"), out: Path | None = None) -> None:
    torch.manual_seed(0)
    panel = data.read(source, SYMBOLS)
    windows = WindowDataset(panel, 60, ["1w", "1m", "3m", "6m"], features=ops.log_returns(panel.values), stride=5)
    outer = data.walk_forward(panel.dates, test_start=2018, horizon=126, test_rows=len(panel))[0]
    inner = data.hold_out(outer.train, horizon=126)
    parts = dict(zip(["training", "validation", "test"], windows.split(inner.train, inner.test, outer.test)))
    model = Forecaster(parts["training"])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = [evaluate(model, parts)]
    for _ in range(10):
        for batch in DataLoader(parts["training"], batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
        history.append(evaluate(model, parts))
    print(f"{windows}; {panel.provenance[0].publisher}; {panel.provenance[0].location}\n")
    print(pd.DataFrame(history).rename_axis("epoch").to_string(float_format="%.3f"))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure = px.line(history, markers=True, labels={"index": "epoch", "value": "loss"}, template="plotly_white")
        figure.write_html(out / "07_windows.html", include_plotlyjs="directory")


if __name__ == "__main__":
    typer.run(main)
