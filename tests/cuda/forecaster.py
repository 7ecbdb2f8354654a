"""Fitted models end to end: training, forecasts, backtest, profile, export and the server on the device.

It needs the extras `forecast` and `serve`; what is missing is said in the rows that need it.
"""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from gpu import DEVICE, REHEARSAL, ROOT, Table, exit_without_gpu

NAME = str(DEVICE)
TOLERANCE = 1e-4  # of a log-return: networks compute in float32
REQUIRED = ("pandas", "pyarrow", "scipy", "safetensors", "threadpoolctl", "lightning_fabric")


def require(*packages: str) -> None:
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise ImportError(f"needs {', '.join(missing)}")


@cache
def prices() -> Any:
    from torchcommodity import data

    return data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2018-12-31").with_contracts({"WTI": "CL"})


@cache
def fitted(model: str = "har-lstm", device: str = "cpu", precision: str = "32-true", epochs: int = 1) -> Any:
    """A forecaster whose network is active."""
    from dataclasses import replace

    from torchcommodity import forecast, training

    config = training.FitConfig.for_frequency("daily", model)
    train = replace(config.train, device=device, precision=precision, epochs=epochs)
    forecaster = forecast.fit(prices(), replace(config, train=train))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in training.network_parameters(forecaster.model):
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator).to(parameter))
    forecaster.model.har.shrink.fill_(0.5)
    return forecaster


def difference(x: torch.Tensor, y: torch.Tensor) -> str:
    assert x.device.type == "cpu", f"the result is on {x.device}"
    assert torch.equal(x.isnan(), y.isnan()), "NaNs differ"
    largest = (x - y).abs().nan_to_num(0.0).max().item()
    assert largest < TOLERANCE, f"a log-return differs by {largest:.1e}"
    return f"pass, largest difference {largest:.1e}"


def predict(model: str) -> str:
    forecaster = fitted(model, epochs=0)
    return difference(forecaster.to(NAME).predict(prices()).log_returns, forecaster.predict(prices()).log_returns)


def simulate() -> None:
    forecaster = fitted("har-garch", epochs=0)
    actual, expected = (f.simulate(prices(), 5).prices.plain() for f in (forecaster.to(NAME), forecaster))
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=0)  # the forecasts differ by rounding


def live() -> None:
    forecaster = fitted("har-garch", epochs=0).to(NAME)
    state = forecaster.start(prices().between(None, "2018-12-20"))
    _, forecast = forecaster.step(state, prices().between("2018-12-21"))
    difference(forecast.log_returns, forecaster.predict(prices()).log_returns)


def on_device() -> tuple[Any, Any]:
    """A forecaster on the device, and a batch for it."""
    from torchcommodity import optimize, training

    forecaster = fitted("har-lstm", epochs=0).to(NAME)
    inputs = training.model_inputs(prices(), forecaster.horizons[-1])
    return forecaster, optimize.benchmark_inputs(inputs, 400, 2, forecaster.horizons[-1])


def in_graph() -> str:
    """The whole step, from prices to quantiles, as a CUDA graph against the eager step."""
    from torchcommodity import optimize

    forecaster, batch = on_device()
    result = optimize.compile(forecaster, [batch], mode="reduce-overhead")
    largest = max(row.absolute for row in result.differences)
    assert largest < TOLERANCE, f"an output differs by {largest:.1e}"
    return f"pass, {result.speedup}, largest difference {largest:.1e}"


def profile() -> str:
    from torchcommodity import optimize

    forecaster, batch = on_device()
    result = optimize.profile(forecaster, [batch], steps=2, stacks=False)
    assert result.device.startswith(DEVICE.type), f"it was profiled on {result.device}"
    return f"pass: {result.summary[:120]}"


def train(precision: str) -> str:
    require("lightning_fabric")
    return f"pass: {fitted('har-lstm', NAME, precision).record.note.split('; ')[-1]}"


def artifact(format: str) -> str:
    from torchcommodity import export

    forecaster = fitted("har-lstm", epochs=0)
    with tempfile.TemporaryDirectory() as folder:
        path = export.export(forecaster, Path(folder, "model.pt2"), format, device=NAME)
        loaded = export.Artifact.load(path, NAME, trusted=True)
        return difference(loaded.predict(prices()).log_returns, forecaster.predict(prices()).log_returns)


def command(*arguments: str) -> str:
    program = [sys.executable, "-c", "from torchcommodity.cli import main; main()", *arguments]
    process = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=400)
    if process.returncode:
        raise RuntimeError(process.stderr[-600:])
    return process.stdout


def commands(folder: Path) -> dict[str, Callable[[], Any]]:
    """The commands in order; each reads what those before it wrote."""
    fit, pt2, out = str(folder / "model.safetensors"), str(folder / "model.pt2"), str(folder / "forecast.csv")
    device = ("--device", NAME)
    panel = ("--symbols", "WTI")
    return {
        "fit --model har-lstm": lambda: command("fit", "--model", "har-lstm", *panel, "--out", fit, *device) and None,
        "predict": lambda: command("predict", fit, *device, "--out", out) and None,
        "profile": lambda: command("profile", fit, *device, "--steps", "2") and None,
        "export": lambda: command("export", fit, "--out", pt2, *device) and None,
        "predict MODEL.pt2": lambda: command("predict", pt2, *device) and None,
        "serve --memory-fraction 0.2": lambda: serve(pt2),
        "backtest --model har-lstm": lambda: (
            command("backtest", "--model", "har-lstm", *panel, "--first-year", "2025", *device) and None
        ),
    }


def serve(path: str) -> str:
    """Start the server, send its own example request, stop it."""
    require("fastapi", "uvicorn", "httptools", "pydantic", "prometheus_client")
    program = [sys.executable, "-c", "from torchcommodity.cli import main; main()", "serve", path, "--port", "0"]
    options = ["--device", NAME, *(["--memory-fraction", "0.2"] if DEVICE.type == "cuda" else [])]
    server = subprocess.Popen([*program, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        address, lines = None, list[str]()
        while address is None:
            lines.append(server.stderr.readline())
            assert lines[-1], f"the server has stopped: {' '.join(lines)}"
            address = re.search(r"http://[\d.]+:\d+", lines[-1])
        with urllib.request.urlopen(f"{address[0]}/openapi.json", timeout=60) as response:
            text = response.read().decode()
        example = next(found for found in _examples(json.loads(text)) if "instances" in found)
        body = json.dumps(example).encode()
        request = urllib.request.Request(f"{address[0]}/predict", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            predictions = json.load(response)["predictions"]
        return f"pass, {len(predictions)} prediction"
    finally:
        server.terminate()
        server.wait(60)


def _examples(value: Any) -> Any:
    """Dictionaries anywhere in a document."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _examples(part)


def main() -> None:
    exit_without_gpu()
    table = Table("forecaster", "step", "on", "result")
    try:
        require(*REQUIRED)
    except ImportError as error:
        table.row("all", NAME, f"skipped: {error}; pip install 'torchcommodity[forecast,serve]'")
        return
    from torchcommodity.models import MODELS

    for model in sys.argv[1:] or (MODELS if not REHEARSAL else ["har-lstm"]):
        table.check(f"predict, `{model}`", NAME, call=lambda model=model: predict(model))
    steps: dict[str, Callable[[], Any]] = {"simulate": simulate, "start, step": live, "profile": profile}
    if DEVICE.type == "cuda":
        steps |= {
            f"fit, {precision}": lambda p=precision: train(p) for precision in ("32-true", "bf16-mixed", "16-mixed")
        }
    steps |= {"step in a CUDA graph": in_graph, "export, pt2": lambda: artifact("pt2")}
    for step, call in steps.items():
        table.check(step, NAME, call=call)
    if DEVICE.type != "single":
        with tempfile.TemporaryDirectory() as folder:
            steps = commands(Path(folder))
            for name in steps if not REHEARSAL else [*steps][:-1]:  # the backtest takes minutes on a CPU
                call = steps[name]
                table.check(f"`torchcommodity {name}`", NAME, call=call)
        if not REHEARSAL:
            table.check("export, aoti", NAME, call=lambda: artifact("aoti"))  # last: it compiles
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
