"""Every layer of `nn` and every loss of `losses`, with inputs on which to compare two devices."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from torchcommodity import data, losses
from torchcommodity import nn as layers
from torchcommodity.ops import log_returns, rolling_covariance

Case = tuple[nn.Module, tuple[Any, ...]]

NO_INTEGER_PERIODS = torch.tensor([[9.3], [7.7], [18.4], [6.2]])  # of `Indicators`: rounding changes no warm-up


class Call(nn.Module):
    """A function as a Module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


class OfData(nn.Module):
    """A layer at the start of a graph: its inputs need no gradient."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *tensors: Tensor) -> Any:
        return self.layer(*(x.detach() for x in tensors))


def panel() -> Tensor:  # (1, 120, 3)
    """Prices of two oils and gas, one of them missing for ten rows, and oil once negative."""
    prices = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01").values.plain()[:120].float()
    prices[60, 0], prices[70:80, 1] = -37.63, torch.nan
    return prices[None]


def layer_cases() -> dict[str, Case]:
    prices, noise = panel(), torch.randn(2, 20, 4)
    returns = log_returns(prices)
    with_gap = noise.clone()
    with_gap[0, 5, 1] = torch.nan
    image, state = torch.randn(2, 1, 6, 6), (torch.randn(2, 3), torch.randn(2, 3))
    covariance = rolling_covariance(returns.double(), 20).float()
    positive = nn.Linear(4, 3)
    positive.weight.data.abs_()
    interval = nn.PReLU()
    indicators = layers.Indicators()
    indicators.halflife = torch.tensor(
        [[9.3], [7.7], [18.4], [6.2]]
    )  # periods are no integers: no rounding in a warm-up
    int8 = layers.LSTM(4, 3, batch_first=True)
    layers.to_int8(int8, "weight_hh_l0")
    return {
        "LLTM": (layers.LLTM(4, 3, batch_first=True), (with_gap,)),
        "LSTM": (layers.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), (with_gap,)),
        "TCN": (layers.TCN(4, (4, 4)), (with_gap,)),
        "ConvBN1d": (layers.ConvBN1d(20, 3, 3, padding="causal"), (noise,)),
        "ConvBN2d": (layers.ConvBN2d(1, 3, 3, padding=1), (image,)),
        "CorrelationConv": (layers.CorrelationConv(2, 3), (torch.randn(1, 9, 2, 4, 4).tril().tanh(),)),
        "CorrelationRegime": (OfData(layers.CorrelationRegime(20, min_periods=10, threshold=0.2, lag=5)), (prices,)),
        "CrossAssetAttention": (layers.CrossAssetAttention(4, 2), (with_gap,)),
        "EwmVolatility": (layers.EwmVolatility([5.0, 21.0]), (returns,)),
        "GarchVariance": (layers.GarchVariance(3), (returns,)),
        "Indicators": (indicators, (prices,)),
        "Interval": (register_parametrization(interval, "weight", layers.Interval(0, 1)), (noise,)),
        "LLTMCell": (layers.LLTMCell(4, 3), (noise[:, 0], state)),
        "LSTMCell": (layers.LSTMCell(4, 3), (noise[:, 0], state)),
        "LinearBNReLU": (layers.LinearBNReLU(4, 3), (noise,)),
        "Orthogonal": (register_parametrization(nn.Linear(4, 4), "weight", layers.Orthogonal()), (noise,)),
        "MinMaxScaler": (Call(lambda x: layers.MinMaxScaler().fit_transform(x)), (prices,)),
        "RobustScaler": (Call(lambda x: layers.RobustScaler().fit_transform(x)), (prices,)),
        "StandardScaler": (Call(lambda x: layers.StandardScaler().fit_transform(x)), (prices,)),
        "Positive": (register_parametrization(positive, "weight", layers.Positive(0.5)), (noise,)),
        "RollingCorrelation": (OfData(layers.RollingCorrelation(20, min_periods=10, lag=5)), (prices,)),
        "VolatilityTarget": (layers.VolatilityTarget(0.1), (torch.randn(1, 120, 3), covariance)),
        "orthogonal_gates": (layers.orthogonal_gates(layers.LSTM(4, 3, batch_first=True)), (noise,)),
        "to_int8": (int8, (noise,)),
        "torch.nn.LSTM": (nn.LSTM(4, 3, num_layers=2, batch_first=True), (noise,)),
    }


def loss_cases() -> dict[str, Case]:
    levels = torch.tensor([0.1, 0.5, 0.9])
    returns = log_returns(panel())[0, 1:].T.contiguous()  # (3, T), NaN where missing
    weights, rolls = torch.rand(3, 119, 3), torch.rand(3, 119, 3) > 0.9
    panel_returns = log_returns(panel())[:, 1:].expand(3, -1, -1).contiguous()
    quantiles, teacher = 0.02 * torch.randn(3, 119, 3).sort(-1).values, 0.02 * torch.randn(3, 119, 3).sort(-1).values
    variance, realized = torch.rand(3, 119) + 0.1, torch.rand(3, 119)
    samples, target = torch.randn(5, 40, 3), torch.randn(5, 3)
    per_asset = torch.tensor([0.001, 0.002, 0.003])
    return {
        "CRPSLoss": (losses.CRPSLoss(levels), (quantiles, returns)),
        "CVaRLoss": (losses.CVaRLoss(0.9, threshold=0.01), (returns,)),
        "DistillationLoss": (losses.DistillationLoss(levels), (quantiles, teacher, returns)),
        "DrawdownLoss": (losses.DrawdownLoss(), (returns,)),
        "NetReturns": (losses.NetReturns(0.001, per_asset), (weights, panel_returns, rolls)),
        "PortfolioReturns": (losses.PortfolioReturns(0.001), (weights[:, 0], panel_returns.nan_to_num())),
        "PinballLoss": (losses.PinballLoss(levels), (quantiles, returns)),
        "PooledSharpe": (Call(_pooled_sharpe), (returns,)),
        "QLIKELoss": (losses.QLIKELoss(), (variance, realized)),
        "ScaledMSELoss": (losses.ScaledMSELoss(), (returns, 0.5 * returns, variance)),
        "SharpeLoss": (losses.SharpeLoss(), (returns,)),
        "SortinoLoss": (losses.SortinoLoss(), (returns,)),
        "TurnoverCost": (losses.TurnoverCost(per_asset), (weights, panel_returns)),
        "crps": (Call(lambda q, y: losses.crps(q, y, levels.to(q))), (quantiles, returns)),
        "cvar_loss": (Call(lambda r: losses.cvar_loss(r, 0.9)), (returns,)),
        "distillation_loss": (
            Call(lambda q, t, y: losses.distillation_loss(q, t, y, levels.to(q))),
            (quantiles, teacher, returns),
        ),
        "drawdown_loss": (Call(losses.drawdown_loss), (returns,)),
        "energy_score": (Call(losses.energy_score), (samples, target)),
        "net_returns": (Call(lambda w, r: losses.net_returns(w, r, 0.001)), (weights, panel_returns)),
        "portfolio_returns": (
            Call(lambda w, r: losses.portfolio_returns(w, r, 0.001, rebalance=False)),
            (weights[:, 0] / 3, panel_returns.nan_to_num()),
        ),
        "pinball": (Call(lambda q, y: losses.pinball(q, y, levels.to(q))), (quantiles, returns)),
        "qlike": (Call(losses.qlike), (variance, realized)),
        "scaled_mse_loss": (Call(losses.scaled_mse_loss), (returns, 0.5 * returns, variance)),
        "sharpe_loss": (Call(lambda r: losses.sharpe_loss(r, pooled=True)), (returns,)),
        "sortino_loss": (Call(losses.sortino_loss), (returns,)),
        "turnover": (Call(losses.turnover), (weights, panel_returns)),
        "turnover_cost": (Call(lambda w, r: losses.turnover_cost(w, r, 0.001)), (weights, panel_returns)),
        "variogram_score": (Call(losses.variogram_score), (samples, target)),
    }


def _pooled_sharpe(returns: Tensor) -> Tensor:
    pool, parts = losses.PooledSharpe(), returns.split(2)
    for part in parts:
        pool.collect(part)
    return torch.stack([pool.loss(part) for part in parts]).sum()
