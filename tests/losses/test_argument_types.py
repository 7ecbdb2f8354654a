"""Losses of what is not a Tensor: an error names the argument and its type, since NumPy has no gradient."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchcommodity import losses

FUNCTIONS = {name: getattr(losses, name) for name in losses.__all__ if inspect.isfunction(getattr(losses, name))}


def tensor_parameters(function: Callable[..., Any]) -> list[str]:
    """Required parameters of a loss; its costs may be numbers."""
    parameters = inspect.signature(function).parameters.values()
    return [
        parameter.name for parameter in parameters if parameter.default is parameter.empty and parameter.name != "cost"
    ]


@pytest.mark.parametrize(
    ("name", "argument"), [(name, x) for name, f in FUNCTIONS.items() for x in tensor_parameters(f)]
)
@pytest.mark.parametrize("convert", [torch.Tensor.numpy, torch.Tensor.tolist], ids=["ndarray", "list"])
def test_loss_of_what_is_not_a_tensor_names_the_argument(
    name: str, argument: str, convert: Callable[[torch.Tensor], Any]
) -> None:
    # quantiles (4, 3), target (4,), levels (3,); returns and weights (4, 3), for portfolio_returns (2, 4, 3)
    shapes = {"target": (4,), "levels": (3,)} if "levels" in tensor_parameters(FUNCTIONS[name]) else {}
    if name in ("energy_score", "variogram_score"):
        shapes = {"target": (3,)}
    if name == "portfolio_returns":
        shapes = {"weights": (3,)}
    tensors = {key: torch.rand(shapes.get(key, (4, 3))) for key in tensor_parameters(FUNCTIONS[name])}
    others = {"cost": 0.001} if name == "turnover_cost" else {}
    FUNCTIONS[name](**tensors, **others)
    value = convert(tensors[argument])
    with pytest.raises(
        TypeError, match=f"{name}: {argument} must be a Tensor; got {argument}='{type(value).__name__}'"
    ):
        FUNCTIONS[name](**(tensors | {argument: value}), **others)


@pytest.mark.parametrize(
    ("cost", "error", "message"),
    [
        ("1bp", TypeError, r"cost must be a number or a Tensor \(N,\); got cost='str'"),
        ([0.001, 0.002, 0.001], TypeError, r"cost must be a number or a Tensor \(N,\); got cost='list'"),
        (torch.rand(2), ValueError, r"cost must be a number or a Tensor \(N,\) .*; got cost \(2,\), weights"),
    ],
)
def test_cost_that_does_not_fit_the_assets_is_refused(cost: Any, error: type[Exception], message: str) -> None:
    weights, returns = torch.rand(4, 3), torch.rand(4, 3)
    for name in ("net_returns", "turnover_cost"):
        with pytest.raises(error, match=f"{name}: {message}"):
            FUNCTIONS[name](weights, returns, cost)
    with pytest.raises(error, match=f"portfolio_returns: {message}"):
        losses.portfolio_returns(weights[0], returns, cost)


@pytest.mark.parametrize("cost", [0, 0.001, torch.tensor(0.001), torch.rand(3), torch.rand(1)])
def test_cost_is_a_number_or_a_value_for_each_asset(cost: Any) -> None:
    assert losses.portfolio_returns(torch.rand(3), torch.rand(4, 3), cost).shape == (4,)
    assert losses.net_returns(torch.rand(4, 3), torch.rand(4, 3), cost).shape == (4,)


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (losses.sharpe_loss, {"epsilon": "1e-8"}),
        (losses.sharpe_loss, {"risk_free": "0.02"}),
        (losses.sortino_loss, {"target": "0"}),
        (losses.sortino_loss, {"epsilon": "0"}),
        (losses.cvar_loss, {"level": "0.05"}),
    ],
)
def test_setting_that_is_no_number_is_refused(function: Callable[..., Any], settings: dict[str, str]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(TypeError, match=f"^{function.__name__}: {name} must be a number; got {name}='{value}'$"):
        function(torch.rand(4), **settings)


@pytest.mark.parametrize("number", [0, 0.1, np.float32(0.1), torch.tensor(0.1)])
def test_setting_may_be_any_number(number: Any) -> None:
    assert not losses.sharpe_loss(torch.rand(4), risk_free=number, epsilon=number).isnan()
    assert not losses.sortino_loss(torch.rand(4), target=number, epsilon=number).isnan()
    assert not losses.cvar_loss(torch.rand(4), number).isnan()


@pytest.mark.parametrize("module", [losses.PortfolioReturns, losses.NetReturns, losses.TurnoverCost])
def test_cost_of_a_module_that_is_no_number_is_refused(module: Any) -> None:
    with pytest.raises(TypeError, match=f"^{module.__name__}: cost must be a Tensor, or numbers .*; got cost='str'$"):
        module("x")


@pytest.mark.parametrize("name", ["portfolio_returns", "net_returns", "turnover_cost", "turnover"])
def test_integer_weights_are_refused(name: str) -> None:
    weights = torch.zeros(3 if name == "portfolio_returns" else (4, 3), dtype=torch.long)
    costs = {"cost": 0.001} if name == "turnover_cost" else {}
    with pytest.raises(
        ValueError, match=f"^{name}: weights must be floating point; got dtype=torch.int64 with weights"
    ):
        FUNCTIONS[name](weights[..., :3], torch.rand(4, 3), **costs)
