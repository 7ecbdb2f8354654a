"""Fits, moments and live updates on a device without float64: `python econometrics.py [--device mps]`.

On real returns, in float32, against the CPU in float64 from the same float32 numbers. Prints the failures as JSON.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from torchcommodity import data, ops

ROUNDING = 1e-7  # of one number
VALUES = 1e-5  # relative to each element and to the median size of the tensor
GRADIENTS = 1e-4
REGIMES = {
    "mean": torch.zeros(2, 1),
    "variance": torch.tensor([[3.0, 3.0, 10.0], [20.0, 20.0, 90.0]]),
    "transition": torch.tensor([[0.98, 0.02], [0.05, 0.95]]).unsqueeze(-1),
}
GARCH = {"omega": torch.tensor([0.1, 0.1, 0.4]), "alpha": 0.08, "beta": 0.9}
EGARCH = {"omega": torch.tensor([0.03, 0.03, 0.06]), "alpha": 0.15, "beta": 0.98, "gamma": -0.05}
DCC = {"a": 0.03, "b": 0.95, "target": 0.5 + 0.5 * torch.eye(3)}


@cache
def returns() -> Tensor:
    """In percent, with the gaps of the data; WTI's negative price is missing."""
    prices = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).values.plain()
    return 100 * prices.where(prices > 0, torch.nan).log().diff(dim=0).float()


def calls() -> dict[str, tuple[Any, Tensor, dict[str, Any]]]:
    short = returns()[-60:]
    level = 1e6 + short
    return {
        "ewm_std at a level of 1e6": (ops.ewm_std, level, {"span": 20}),
        "ewm_covariance at a level of 1e6": (ops.ewm_covariance, level, {"span": 20, "ignore_na": True}),
        "ewm_correlation at a level of 1e6": (ops.ewm_correlation, level, {"halflife": 10}),
        "ewm_var after gaps": (ops.ewm_var, level, {"alpha": 0.9}),
        "ewm_var, a long half-life": (ops.ewm_var, short, {"halflife": 1000, "adjust": False, "bias": True}),
        "ewm_mean": (ops.ewm_mean, short, {"com": torch.tensor([2.0, 5.0, 50.0])}),
        "riskmetrics_variance": (ops.riskmetrics_variance, short, {"halflife": 11.2}),
        "garch_variance": (ops.garch_variance, short, GARCH),
        "garch_forecast": (ops.garch_forecast, short, GARCH | {"horizon": [5, 21]}),
        "egarch_variance": (ops.egarch_variance, short, EGARCH),
        "hamilton_filter": (ops.hamilton_filter, short, REGIMES),
        "ccc_correlation": (ops.ccc_correlation, returns(), {}),
        "dcc_correlation": (ops.dcc_correlation, short[-40:] / 3, DCC),
        "dcc_log_likelihood": (ops.dcc_log_likelihood, short[-40:] / 3, DCC),
    }


def wrong_values(device: str) -> Iterator[str]:
    for name, (function, x, settings) in calls().items():
        x_device, settings_device = _to(device, x), _to(device, settings)
        expected = _with_gradient(function, x.double(), _to(torch.float64, settings))
        actual = _with_gradient(function, x_device, settings_device)
        for i, (y, z) in enumerate(zip(actual, expected, strict=True)):
            tolerance = GRADIENTS if i == len(expected) - 1 else VALUES
            if (error := _error(y, z)) > tolerance:
                yield f"{name}: {'gradient' if i == len(expected) - 1 else f'output {i}'}: relative error {error:.1e}"


def wrong_fits(device: str) -> Iterator[str]:
    x = returns()[-4000:]
    fits = [(ops.garch_fit, x, {}), (ops.garch_fit, x, {"asymmetric": True, "distribution": "t"})]
    for function, panel, settings in [*fits, (ops.dcc_fit, x / 3, {})]:
        expected, actual = (_fields(function(p, **settings)) for p in (panel, panel.to(device)))
        for name, y in actual.items():
            if y.device.type != device or y.dtype == torch.float64:
                yield f"{function.__name__}: {name} is {y.dtype} on {y.device}"
            if (error := _error(y, expected[name].double())) > ROUNDING:
                yield f"{function.__name__}: {name}: relative error {error:.1e}"


def wrong_updates(device: str) -> Iterator[str]:
    """Live updates give the bits of one call; running sums of `ccc_correlation` are rounded once more."""
    for name, (function, x, settings) in calls().items():
        if hasattr(function, "start"):
            x, settings = _to(device, x[-30:]), _to(device, settings)
            state = function.start(x[:10], **settings)
            state, _ = function.update(state, x[10:29])
            state, last = function.step(state, x[29])
            expected = [y[-1] for y in tree_leaves(function(x, **settings))]
            limit = ROUNDING if function is ops.ccc_correlation else 0
            errors = [_error(y, z.cpu().double()) for y, z in zip(tree_leaves(last), expected, strict=True)]
            if max(errors) > limit:
                yield f"{name}: live updates: relative error {max(errors):.1e}"


def _to(target: Any, values: Any) -> Any:
    return tree_map_only(Tensor, lambda x: x.to(target), values)


def _fields(fit: Any) -> dict[str, Tensor]:
    return {name: x for name, x in vars(fit).items() if isinstance(x, Tensor)} | fit.standard_error


def _with_gradient(function: Any, x: Tensor, settings: dict[str, Any]) -> list[Tensor]:
    """The outputs, and the gradient of a sum over them."""
    leaf = x.detach().requires_grad_()
    outputs = tree_leaves(function(leaf, **settings))
    loss = torch.stack([(y.sin() + y.square() / 2).nan_to_num(0).sum() for y in outputs]).sum()
    return [*(y.detach() for y in outputs), torch.autograd.grad(loss, leaf)[0]]


def _error(actual: Tensor, expected: Tensor) -> float:
    """Largest error relative to each element and to the median size; infinite if other elements are finite."""
    x, finite = actual.cpu().double(), expected.isfinite()
    if not torch.equal(x.isfinite(), finite):
        return float("inf")
    size = expected[finite].abs()
    error = (x[finite] - expected[finite]).abs() / (size + size.median()) if size.numel() else size
    return float(error.nan_to_num(0).max()) if size.numel() else 0.0


def failures(device: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*native kernels.*")
        return [failure for check in (wrong_values, wrong_fits, wrong_updates) for failure in check(device)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="single")
    arguments = parser.parse_args()
    if arguments.device == "single":
        import single_device

        assert torch.device(arguments.device).type == single_device.NAME
    sys.stdout.write(json.dumps(failures(arguments.device)))


if __name__ == "__main__":
    main()
