"""Models that are none of PyTorch's

An ONNX file and a scikit-learn regressor become operators. The file is our own forecaster, fitted on oil and exported,
so that its numbers can be compared with those of the module it came from.

Both are opaque to autograd. `opkit.external` asks what their gradient is to be: "none" is an error in words when one is
asked for, and "finite-difference" is measured, two calls for every feature.
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

from torchcommodity import data, forecast, opkit, ops
from torchcommodity.models import HarLstm

PLAIN = {"displayModeBar": False, "responsive": True}
ROWS = 300  # of prices that a forecast sees


def prices() -> Tensor:  # (T, 1), US dollars per barrel
    return data.embedded().select(["WTI"]).between("2012-01-01", "2016-12-31").values.plain()


def exported_forecaster(folder: Path) -> tuple[HarLstm, Path]:
    """A forecaster fitted on oil, and its ONNX file: raw prices (B, T, N) in, quantiles (B, H, N, Q) out."""
    panel = data.embedded().select(["WTI"]).between("2008-01-01", "2013-12-31")
    model, window = forecast.fit(panel, seed=0).model.eval(), prices()[None, :ROWS]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's own, and its word that torchvision is not here
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(model, (window,), dynamo=True, verbose=False)
    program.save(folder / "forecaster.onnx")
    return model, folder / "forecaster.onnx"


def forecaster_as_operator() -> tuple[Tensor, Tensor]:
    """The quantiles of the ONNX operator, and those of the module that it came from."""
    with tempfile.TemporaryDirectory() as folder:
        model, file = exported_forecaster(Path(folder))
        session = onnxruntime.InferenceSession(file)
    shape = len(model.har.config.horizons), 1, len(model.har.config.levels)
    operator = opkit.external(session, name="examples::forecaster", fake=lambda x: x.new_empty(len(x), *shape))
    window = prices()[None, -ROWS:]
    return operator(window), model(window)


def regressor_as_operator() -> tuple[Tensor, Tensor]:
    """What a day's volatilities say of the next month's, per year; and the slope in each of them."""
    returns = ops.log_returns(prices())
    terms = [ops.rolling_std(returns, window) * 252**0.5 for window in (5, 21, 63)]
    features, target = torch.cat(terms, -1)[63:-21], terms[1][63 + 21 :, 0]
    model = Ridge(alpha=1e-3).fit(features[:800].numpy(), target[:800].numpy())
    operator = opkit.external(model, name="examples::volatility", gradient="finite-difference")
    last = features[-1:].clone().requires_grad_()
    volatility = operator(last)
    return volatility, torch.autograd.grad(volatility.sum(), last)[0]


def figure(onnx: Tensor) -> go.Figure:  # (1, H, 1, Q)
    months, drawn = ["1 week", "1 month", "3 months", "6 months"], go.Figure()
    for low, high, color in ((0, 18, "#dbe6f3"), (4, 14, "#a9c4e3")):
        drawn.add_scatter(x=months, y=onnx[0, :, 0, low], line={"width": 0}, showlegend=False)
        name = f"{5 * (high - low)} % interval"
        drawn.add_scatter(
            x=months, y=onnx[0, :, 0, high], line={"width": 0}, fill="tonexty", fillcolor=color, name=name
        )
    drawn.add_scatter(x=months, y=onnx[0, :, 0, 9], name="median", line={"color": "#4c78a8"})
    return drawn.update_layout(
        template="plotly_white", legend={"orientation": "h"}, margin={"l": 40, "r": 10, "t": 30, "b": 30},
        title={"text": "log-return of oil after 2016-12-30, said by the ONNX operator", "font": {"size": 14}},
    )  # fmt: skip


def main(out: Path | None = None):
    onnx, torchs = forecaster_as_operator()
    mark = data.embedded().select(["WTI"]).provenance[0]
    print(f"WTI to 2016-12-30; {mark.publisher}; {mark.location}")
    print(f"1 week to 6 months, median log-return: {', '.join(f'{x:+.4f}' for x in onnx[0, :, 0, 9].tolist())}")
    print(f"ONNX and PyTorch differ by at most {(onnx - torchs).abs().max():.1e}")
    volatility, slope = regressor_as_operator()
    print(f"volatility of the next month {volatility.item():.0%} per year;")
    print(f"its slope by those of 5, 21, 63 days: {', '.join(f'{x:.2f}' for x in slope[0].tolist())}")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        figure(onnx).write_html(out / "06_external_models.html", include_plotlyjs="directory", config=PLAIN)


if __name__ == "__main__":
    typer.run(main)
