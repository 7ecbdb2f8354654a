"""Registry of the forecasters: name, config and Module.

The names tell which network corrects the econometric scale of `Har`. Three of them correspond to models of the
tutorials on which this library is based:

    garch-lstm              "enhanced": an LSTM with learnable GARCH volatility and indicators
    har-mlp-lstm            "custom ops": every family of native operators in one model
    har-orthogonal-lstm     "constrained": positive and orthogonal parametrizations
"""

from difflib import get_close_matches
from typing import Any, NamedTuple, get_args

import torch
from torch import nn

from torch_opkit.arguments import check_integer, current_operation
from torchcommodity._choices import ModelName
from torchcommodity.models._config_fields import config_from_dict
from torchcommodity.models._garch_lstm import GarchLstm, GarchLstmConfig
from torchcommodity.models._har_attention import HarAttention, HarAttentionConfig
from torchcommodity.models._har_config import Frequency, HarConfig, ModelConfig, frequency_settings
from torchcommodity.models._har_garch import HarGarch, HarGarchConfig
from torchcommodity.models._har_lltm import HarLltm, HarLltmConfig
from torchcommodity.models._har_lstm import HarLstm, HarLstmConfig
from torchcommodity.models._har_mlp_lstm import HarMlpLstm, HarMlpLstmConfig
from torchcommodity.models._har_network import HarNetwork
from torchcommodity.models._har_orthogonal_lstm import HarOrthogonalLstm, HarOrthogonalLstmConfig
from torchcommodity.models._har_regime import HarRegime, HarRegimeConfig
from torchcommodity.models._har_tcn import HarTcn, HarTcnConfig
from torchcommodity.models._window_network import NetworkConfig, Windowed, import_network, windowed


class ModelEntry(NamedTuple):
    """One row of `MODELS`: `model(assets, config)` builds the Module."""

    config: type[ModelConfig]
    model: type[HarNetwork]
    summary: str


_ENTRIES = (
    ModelEntry(HarGarchConfig, HarGarch, "HAR-GARCH term structure of volatility, no network (default)"),
    ModelEntry(HarLstmConfig, HarLstm, "LSTM over the volatility features of each symbol"),
    ModelEntry(HarLltmConfig, HarLltm, "LLTM (long-long-term memory) over the same features"),
    ModelEntry(HarTcnConfig, HarTcn, "Temporal convolutional network over the same features"),
    ModelEntry(HarAttentionConfig, HarAttention, "LSTM with attention across symbols"),
    ModelEntry(HarRegimeConfig, HarRegime, "LSTM with rolling correlations and correlation regimes"),
    ModelEntry(GarchLstmConfig, GarchLstm, "LSTM with learnable EWMA, GARCH and technical indicators"),
    ModelEntry(HarMlpLstmConfig, HarMlpLstm, "MLP and LSTM over correlations, indicators, seasonality"),
    ModelEntry(HarOrthogonalLstmConfig, HarOrthogonalLstm, "Orthogonal LSTM with positive volatility weights"),
)
_BY_NAME = {entry.config.registered: entry for entry in _ENTRIES}
MODELS: dict[ModelName, ModelEntry] = {name: _BY_NAME[name] for name in get_args(ModelName)}


def model_entry(name: str) -> ModelEntry:
    """Look up a registered model by name.

    Raises:
        ValueError: an unknown name; the closest registered one is suggested.

    Example:
        >>> model_entry("har-lsmt")
        Traceback (most recent call last):
        ValueError: unknown model 'har-lsmt'; did you mean 'har-lstm'?
    """
    if name in MODELS:
        return MODELS[name]
    matches = get_close_matches(name, MODELS, n=1)
    hint = f"did you mean {matches[0]!r}?" if matches else f"expected one of {', '.join(MODELS)}"
    raise ValueError(f"unknown model {name!r}; {hint}")


def model_name(config: ModelConfig) -> str:
    """Registered name of the model that a config belongs to; of a network of the user's, its import path.

    Raises:
        ValueError: the config of a model that is not registered.

    Example:
        >>> model_name(HarLstmConfig())
        'har-lstm'
    """
    if not isinstance(config, ModelConfig) or not config.name:
        raise ValueError(f"model_name: expected the config of one of {', '.join(MODELS)}; got {type(config).__name__}")
    return config.name


def model_config(name: str, values: dict[str, Any]) -> ModelConfig:
    """Build the config of a registered model from plain values, as parsed from JSON or TOML.

    Args:
        name: a key of `MODELS`.
        values: settings by name; missing ones keep their defaults.

    Raises:
        ValueError: an unknown name or key, or a value of the wrong type.

    Example:
        >>> model_config("har-lstm", {"hidden": 4}).hidden
        4
    """
    return config_from_dict(model_entry(name).config, values)


def default_config(name: str, frequency: Frequency = "daily") -> ModelConfig:
    """Default config of a registered model for prices of a frequency.

    Raises:
        ValueError: an unknown name or frequency.

    Example:
        >>> default_config("har-lstm", "weekly").har.horizons
        (1, 4, 13, 26)
    """
    har = HarConfig.for_frequency(frequency)
    return model_entry(name).config(har=har, **frequency_settings(name, frequency))


def to_model_config(model: Any, frequency: Frequency = "daily") -> ModelConfig:
    """The config of a model, named or made in any way that `fit` takes.

    Args:
        model: a name of `MODELS`; a config; a `torch.nn.Module`, or a class or function that makes one, on windows of
            prices, see `windowed`; a subclass of `HarNetwork`, which corrects the scale of `Har` by its method
            `correction`, built as `model(assets, config)`; or the import path of one of these, `package.module:Name`.
        frequency: of the prices.

    Raises:
        TypeError: anything else.
        ValueError: an unknown name or import path.

    Example:
        >>> to_model_config("har-lstm", "weekly").har.horizons
        (1, 4, 13, 26)
        >>> to_model_config("torch.nn:LSTM").network
        'torch.nn:LSTM'
        >>> to_model_config(HarLstmConfig(hidden=4)).hidden
        4
    """
    path = model if isinstance(model, str) and ":" in model else None
    candidate = model if path is None else import_network(path)
    if isinstance(candidate, ModelConfig):
        return candidate
    if isinstance(candidate, str):
        return default_config(candidate, frequency)
    for name, entry in MODELS.items():
        if candidate is entry.model:
            return default_config(name, frequency)
    if not isinstance(candidate, (Windowed, nn.Module)) and not callable(candidate):
        rule = "model must be a name, a config, a Module, a class or function that makes one, or an import path"
        raise TypeError(f"{current_operation()}: {rule}; got {candidate!r}")
    own = candidate if isinstance(candidate, Windowed) else windowed(candidate)
    har = HarConfig.for_frequency(frequency)
    return NetworkConfig(har, path or own.network, own.lookback, own.inputs, own.output, own.settings, own.factory)


def build_model(config: ModelConfig, assets: int, seed: int = 0) -> HarNetwork:
    """Build an untrained model.

    Args:
        config: config of a model.
        assets: N, the number of symbols.
        seed: random seed of the initialization; the global generator is not changed.

    Returns:
        The Module: its `har` is calibrated in closed form, its network trained.

    Raises:
        TypeError: the name of a model instead of its config, which `default_config` returns; `assets` is not an int.
        ValueError: the config of a model that is not registered; `assets` is below 1.

    Example:
        >>> build_model(HarLstmConfig(hidden=4), assets=2).head
        Linear(in_features=4, out_features=4, bias=True)
    """
    argument: object = config  # a caller may pass anything
    if isinstance(argument, str):
        raise TypeError(
            f"build_model: config must be the config of a model; got {config!r}; see default_config({config!r})"
        )
    check_integer("build_model", 1, assets=assets)
    model_name(config)  # raises for the config of no model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return config.build(assets)
