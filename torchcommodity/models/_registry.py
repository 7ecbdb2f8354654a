"""Every forecaster by name: its frozen config and its Module."""

from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from torchcommodity.models._attention import AttentionConfig, AttentionForecaster
from torchcommodity.models._constrained import ConstrainedConfig, ConstrainedForecaster
from torchcommodity.models._custom_ops import CustomOpsConfig, CustomOpsForecaster
from torchcommodity.models._enhanced import EnhancedConfig, EnhancedForecaster
from torchcommodity.models._har import HarConfig
from torchcommodity.models._har_forecaster import HarForecaster, HarForecasterConfig
from torchcommodity.models._har_lstm import HarLstm, HarLstmConfig
from torchcommodity.models._lltm import LltmConfig, LltmForecaster
from torchcommodity.models._market_regime import MarketRegimeConfig, MarketRegimeForecaster
from torchcommodity.models._settings import read
from torchcommodity.models._tcn import TcnConfig, TcnForecaster


class ModelConfig(Protocol):
    """A frozen dataclass whose field `har` holds the settings of the econometric part."""

    @property
    def har(self) -> HarConfig: ...


class Entry(NamedTuple):
    """A config class and the Module that it shapes: `model(assets, config)`.

    The Module has a `har` of class `Har`, fitted in closed form, and `correction(market)` of shape (B, T, H, N): what
    bends log sigma before it is bounded and shrunk, zero in an untrained model.
    """

    config: type[Any]
    model: type[nn.Module]


MODELS: dict[str, Entry] = {
    "har": Entry(HarForecasterConfig, HarForecaster),
    "har-lstm": Entry(HarLstmConfig, HarLstm),
    "lltm": Entry(LltmConfig, LltmForecaster),
    "tcn": Entry(TcnConfig, TcnForecaster),
    "attention": Entry(AttentionConfig, AttentionForecaster),
    "market-regime": Entry(MarketRegimeConfig, MarketRegimeForecaster),
    "enhanced": Entry(EnhancedConfig, EnhancedForecaster),
    "custom-ops": Entry(CustomOpsConfig, CustomOpsForecaster),
    "constrained": Entry(ConstrainedConfig, ConstrainedForecaster),
}


def name_of(config: ModelConfig) -> str:
    """The name under which the config's model is registered."""
    for name, entry in MODELS.items():
        if type(config) is entry.config:
            return name
    raise ValueError(f"models: expected the config of {', '.join(MODELS)}; got {type(config).__name__}")


def build(config: ModelConfig, assets: int, seed: int = 0) -> Any:
    """An untrained model whose start the seed decides; the global generator is left as it was.

    >>> build(HarLstmConfig(hidden=4), assets=2).head
    Linear(in_features=4, out_features=4, bias=True)
    """
    model = MODELS[name_of(config)].model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model(assets, config)


def settings(name: str, values: dict[str, Any]) -> ModelConfig:
    """The config of a registered model from plain values, as JSON and TOML hold them."""
    config: ModelConfig = read(entry(name).config, values)
    return config


def entry(name: str) -> Entry:
    """The registered model of that name.

    >>> entry("har-lsmt")
    Traceback (most recent call last):
    ValueError: model: expected one of har...; got 'har-lsmt', the nearest is har-lstm
    """
    if name not in MODELS:
        nearest = get_close_matches(name, MODELS, n=1, cutoff=0.0)[0]
        raise ValueError(f"model: expected one of {', '.join(MODELS)}; got {name!r}, the nearest is {nearest}")
    return MODELS[name]
