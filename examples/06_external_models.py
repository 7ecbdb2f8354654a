"""Models outside PyTorch

An ONNX file and a scikit-learn regressor become operators. The file is a forecaster of this library, fitted on oil and
exported, so that its results can be compared with those of the module.

Autograd cannot see inside them. `opkit.external` takes the kind of gradient: with "none" a backward pass raises an
error, and "finite-difference" calls the model twice for every feature.
"""

import logging
import tempfile
import warnings
from pathlib import Path

import onnxruntime
import plotly.graph_objects as go
import torch
import typer
from sklearn.linear_model import Ridge
from torch import Tensor

import torch_opkit as opkit
from torchcommodity import data, forecast, ops
from torchcommodity.models import HarLstm

CONFIG = {"displayModeBar": False, "responsive": True}
ROWS = 300  # input rows of a forecast


def prices() -> Tensor:  # (T, 1), US dollars per barrel
    return data.embedded(["WTI"]).between("2012-01-01", "2016-12-31").values.plain()


def export_forecaster(folder: Path) -> tuple[HarLstm, Path]:
    """Fit a forecaster on oil and export it to ONNX: prices (B, T, N) to quantiles (B, H, N, Q)."""
    panel = data.embedded(["WTI"]).between("2008-01-01", "2013-12-31")
    model, window = forecast.fit(panel, seed=0).model.eval(), prices()[None, :ROWS]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(model, (window,), dynamo=True, verbose=False)
    program.save(folder / "forecaster.onnx")
    return model, folder / "forecaster.onnx"


def forecaster_as_operator() -> tuple[Tensor, Tensor]:
    """Quantiles of the ONNX operator, and of the module that was exported."""
    with tempfile.TemporaryDirectory() as folder:
        model, file = export_forecaster(Path(folder))
        session = onnxruntime.InferenceSession(file)
    shape = len(model.har.config.horizons), 1, len(model.har.config.levels)
    operator = opkit.external(session, name="examples::forecaster", fake=lambda x: x.new_empty(len(x), *shape))
    window = prices()[None, -ROWS:]
    return operator(window), model(window)


def regressor_as_operator() -> tuple[Tensor, Tensor]:
    """Forecast of next month's volatility, per year, and its gradient with respect to each feature."""
    returns = ops.log_returns(prices())
    terms = [ops.rolling_std(returns, window) * 252**0.5 for window in (5, 21, 63)]
    features, target = torch.cat(terms, -1)[63:-21], terms[1][63 + 21 :, 0]
    model = Ridge(alpha=1e-3).fit(features[:800].numpy(), target[:800].numpy())
    operator = opkit.external(model, name="examples::volatility", gradient="finite-difference")
    last = features[-1:].clone().requires_grad_()
    volatility = operator(last)
    return volatility, torch.autograd.grad(volatility.sum(), last)[0]


def figure(onnx: Tensor) -> go.Figure:  # (1, H, 1, Q)
    horizons, chart = ["1 week", "1 month", "3 months", "6 months"], go.Figure()
    for low, high, color in ((0, 18, "#dbe6f3"), (4, 14, "#a9c4e3")):
        chart.add_scatter(x=horizons, y=onnx[0, :, 0, low], line={"width": 0}, showlegend=False)
        name = f"{5 * (high - low)} % interval"
        chart.add_scatter(
            x=horizons, y=onnx[0, :, 0, high], line={"width": 0}, fill="tonexty", fillcolor=color, name=name
        )
    chart.add_scatter(x=horizons, y=onnx[0, :, 0, 9], name="median", line={"color": "#4c78a8"})
    return chart.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "Log-return of oil after 2016-12-30, by the ONNX operator", "font": {"size": 14}},
    )  # fmt: skip


def main(out: Path | None = None):
    onnx, module = forecaster_as_operator()
    source = data.embedded(["WTI"]).provenance[0]
    print(f"WTI to 2016-12-30; {source.publisher}; {source.location}")
    print(f"1 week to 6 months, median log-return: {', '.join(f'{x:+.4f}' for x in onnx[0, :, 0, 9].tolist())}")
    print(f"ONNX and PyTorch differ by at most {(onnx - module).abs().max():.1e}")
    volatility, gradient = regressor_as_operator()
    print(f"volatility of the next month: {volatility.item():.0%} per year")
    print(f"gradient by volatility of 5, 21, 63 days: {', '.join(f'{x:.2f}' for x in gradient[0].tolist())}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure(onnx).write_html(out / "06_external_models.html", include_plotlyjs="directory", config=CONFIG)


if __name__ == "__main__":
    typer.run(main)
