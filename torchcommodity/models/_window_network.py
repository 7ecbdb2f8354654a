"""A network of the user's as a forecaster: from a window of prices to quantiles, a point, a scale, or a distribution.

Legend: B batch, L rows of the window, N symbols, H horizons, Q levels, F features.

    network(window)   quantiles (B, H, N, Q) of the cumulative log-return, a point (B, H, N), a scale (B, H, N) above
                      zero, a `torch.distributions.Distribution` of batch shape (B, H, N), or features (B[, L], F)
    r, w              quantiles: r the network's, w their width; point: r the point, w = sigma_h of `Har`;
                      scale: r = m_h of `Har`, w the scale; features: a linear layer bends the quantiles of `Har`
    forecast          r + w d, sorted; d (H, N, Q) are calibrated on rows on which the network was not trained
"""

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from torch_opkit import Past
from torchcommodity.models._config_fields import Bounds, config_from_dict
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork
from torchcommodity.models._inputs import ModelInputs
from torchcommodity.models._price_scale import scale_inputs
from torchcommodity.models._returns import carry_forward

WindowInputs = Literal["prices", "returns", "log prices"]
NetworkOutput = Literal["quantiles", "point", "scale"]
LOOKBACK = 60  # rows of a window, unless the network has an attribute `lookback`
FURTHER_INPUTS = ModelInputs._fields[1:7]
HALVINGS = 30  # of an interval of 64 sigma on each side that holds a quantile of a distribution
GIVEN = ("assets", "horizons", "levels", "lookback", "config")  # arguments of what makes a network, if it asks for them
NARROWEST = 1e-8  # width of quantiles


@dataclass(frozen=True)
class NetworkConfig(ModelConfig):
    """Settings of a network that is not one of `MODELS`.

    The network is `factory(**settings)`, called with those of `assets`, `horizons`, `levels` and `lookback` too that
    its signature asks for by name. A subclass of `HarNetwork` is called as `factory(assets, config, **settings)`.
    """

    has_own_code: ClassVar[bool] = True

    network: str = ""  # its import path, `package.module:Name`, as a file and a report name it
    lookback: Annotated[int, Bounds(ge=0)] = LOOKBACK  # rows of a window; 0: the network corrects the scale of `Har`
    inputs: WindowInputs = "prices"  # what the network sees of prices
    output: NetworkOutput = "quantiles"  # what a tensor (B, H, N) or (B, H, N, Q) is
    settings: Any = field(default_factory=dict)  # further arguments of `factory`: numbers, texts, true or false
    factory: Any = field(default=None, repr=False)  # makes the network; not part of a file

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "har", replace(self.har, warmup=max(self.har.warmup, self.lookback)))
        object.__setattr__(self, "settings", plain_settings(self.settings))

    @property
    def name(self) -> str:
        return self.network

    @property
    def title(self) -> str:
        return self.network

    def build(self, assets: int) -> HarNetwork:
        if not corrects_scale(self.factory):
            return WindowNetwork(assets, self)
        check_settings(self.factory, self.settings)
        network: HarNetwork = make(self.factory, assets, self, **self.settings)
        return network

    def numbers(self) -> dict[str, int | float]:
        """The look-back, and the numbers of `settings`: `settings.hidden`."""
        own = {f"settings.{name}": value for name, value in self.settings.items() if type(value) in (int, float)}
        return {**super().numbers(), **own}

    def with_numbers(self, numbers: Mapping[str, int | float]) -> "NetworkConfig":
        """Settings with other `numbers`."""
        own = {name.removeprefix("settings."): x for name, x in numbers.items() if name.startswith("settings.")}
        others: dict[str, Any] = {name: x for name, x in numbers.items() if not name.startswith("settings.")}
        return replace(self, settings={**self.settings, **own}, **others)

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries of plain values: the network by its import path."""
        return {name: value for name, value in asdict(replace(self, factory=None)).items() if name != "factory"}

    def from_dict(self, values: Mapping[str, Any]) -> "NetworkConfig":
        """Settings of the same network, with what makes it."""
        return replace(config_from_dict(NetworkConfig, values), factory=self.factory)


class Windowed(NamedTuple):
    """A network and what it is given; see `windowed`."""

    factory: Callable[..., nn.Module]
    network: str
    lookback: int
    inputs: WindowInputs
    output: NetworkOutput
    settings: dict[str, Any]


class InitialState:
    """Makes copies of a module as it is now, so that every fit of a backtest starts from the same weights."""

    def __init__(self, module: nn.Module) -> None:
        self.module = copy.deepcopy(module)

    def __call__(self) -> nn.Module:
        return copy.deepcopy(self.module)


def windowed(
    network: Any, lookback: int | None = None, inputs: WindowInputs = "prices", output: NetworkOutput = "quantiles"
) -> Windowed:
    """A network on look-back windows, for `fit(prices, model=windowed(...))`.

    Args:
        network: a Module; or a class or function that makes one, called with those of `assets`, `horizons`, `levels`
            and `lookback` that its signature asks for by name, or a `functools.partial` of one with further settings,
            which a file keeps. It maps a window (B, L, N) to one of the outputs below, and is given `rolls`, `curve`,
            `references`, `days` and `bars` too, if its `forward` asks for them by name; or it is `batch_first` and
            returns features (B, L, F) or (B, F), as `nn.LSTM` does: a linear layer from the last row of them to the
            quantiles is added, which starts at those of `Har`.
        lookback: L, rows of a window. Default: the attribute `lookback` of the network, else 60.
        inputs: "prices", with the last known price where one is missing; "log prices", or "returns", of one row. The
            last two are standardized with the mean and standard deviation of the rows on which the network is trained.
        output: of a tensor (B, H, N, Q): "quantiles" of the cumulative log-return. Of a tensor (B, H, N): the "point"
            that is expected of it, or its "scale". A `torch.distributions.Distribution` needs no word.

    Raises:
        TypeError: `network` makes no Module, or a setting of a partial is neither a number, a text nor a bool.

    Example:
        >>> from torch import nn
        >>> windowed(nn.LSTM(2, 8, batch_first=True), lookback=20, inputs="returns").network
        'torch.nn.modules.rnn:LSTM'
    """
    if not isinstance(network, nn.Module) and not callable(network):
        raise TypeError(f"windowed: network must be a Module, or make one; got {network!r}")
    settings = dict[str, Any]()
    if isinstance(network, partial):
        if network.args:
            raise TypeError(f"windowed: a partial must have its settings by name; got {network.args}")
        network, settings = network.func, network.keywords
    settings = {**default_settings(network), **settings}
    named = type(network) if isinstance(network, nn.Module) else network
    rows = getattr(network, "lookback", LOOKBACK) if lookback is None else lookback
    rows = 0 if corrects_scale(network) else rows
    factory = InitialState(network) if isinstance(network, nn.Module) else network
    return Windowed(factory, import_path(named), int(rows), inputs, output, settings)


def corrects_scale(factory: Any) -> bool:
    """Whether it is a class that corrects the scale of `Har`."""
    return isinstance(factory, type) and issubclass(factory, HarNetwork)


def is_plain(value: Any) -> bool:
    """Whether a file keeps a value: a number, a text, true or false, or a tuple or list of these."""
    return all(isinstance(x, bool | int | float | str) for x in (value if isinstance(value, list | tuple) else [value]))


def arguments_of(factory: Any) -> list[inspect.Parameter]:
    """The arguments of what makes a network, by name."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a built-in
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def default_settings(factory: Any) -> dict[str, Any]:
    """Defaults of the arguments of what makes a network, which a file keeps: they may be others in a later version."""
    arguments = [] if isinstance(factory, nn.Module) else arguments_of(factory)
    values = {p.name: p.default for p in arguments if p.default is not p.empty and p.name not in GIVEN}
    return {name: value for name, value in values.items() if is_plain(value)}


def plain_settings(settings: Any) -> dict[str, Any]:
    """Settings of a network as a file keeps them: numbers, texts, true or false, and tuples of these.

    >>> plain_settings({"channels": [8, 16], "bias": True})
    {'channels': (8, 16), 'bias': True}
    """
    if not isinstance(settings, Mapping):
        raise TypeError(f"model: settings must be a table of arguments; got {settings!r}")
    for name, value in settings.items():
        if not is_plain(value):
            rule = "settings of a network must be numbers, texts, true or false, or lists of these, which a file keeps"
            raise TypeError(f"model: {rule}; got {name}={value!r}: pass lambda: ... to fit without them")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def import_path(thing: Any) -> str:
    """`package.module:Name` of a class or function.

    >>> import_path(windowed)
    'torchcommodity.models._window_network:windowed'
    """
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    return f"{getattr(thing, '__module__', type(thing).__module__)}:{name}"


def import_network(path: str) -> Any:
    """The object at an import path; modules of the working directory are found.

    Raises:
        ValueError: there is no such module or name.

    >>> import_network("torch.nn:LSTMM")
    Traceback (most recent call last):
    ValueError: model must be an import path, package.module:Name; got 'torch.nn:LSTMM': no LSTMM in torch.nn
    """
    module_name, _, name = path.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    rule = f"model must be an import path, package.module:Name; got {path!r}"
    try:
        target: Any = import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{rule}: {error}") from None
    except Exception as error:  # whatever the code of the module raises
        raise ValueError(f"{rule}: the module raises {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(target, part):
            raise ValueError(f"{rule}: no {name} in {module_name}")
        target = getattr(target, part)
    return target


class WindowNetwork(HarNetwork):
    """Adapter of a network of the user's; its `har` has the scale, and forecasts the volatility.

    Args:
        assets: N, the number of symbols.
        config: settings; `config.factory` makes the network.
    """

    config: NetworkConfig
    adjustment: Tensor  # (H, N, Q) d, calibrated
    mean: Tensor  # (N,) of the inputs on training rows, if they are standardized
    deviation: Tensor  # (N,)
    levels: Tensor  # (Q,)
    normal: Tensor  # (Q,) quantiles of the standard normal distribution

    def __init__(self, assets: int, config: NetworkConfig) -> None:
        super().__init__(assets, config)
        if config.lookback < 2:
            raise ValueError(f"model: a network on windows needs a lookback of 2 rows or more; got {config.lookback}")
        horizons, levels = config.har.horizons, config.har.levels
        known = {"assets": assets, "horizons": horizons, "levels": levels, "lookback": config.lookback}
        self.network = make_network(config.factory, known, config.settings)
        self.asks = [name for name in inspect.signature(self.network.forward).parameters if name in FURTHER_INPUTS]
        self.lookback = config.lookback
        self.register_buffer("adjustment", torch.zeros(len(horizons), assets, len(levels), dtype=torch.double))
        self.register_buffer("mean", torch.zeros(assets, dtype=torch.double))
        self.register_buffer("deviation", torch.ones(assets, dtype=torch.double))
        probabilities = torch.tensor(levels, dtype=torch.double)
        self.register_buffer("levels", probabilities, persistent=False)
        self.register_buffer("normal", torch.special.ndtri(probabilities), persistent=False)
        features = self._features()
        self.layer = None if features is None else nn.Linear(features, len(horizons) * assets * len(levels))
        if self.layer is not None:
            nn.init.zeros_(self.layer.weight)
            nn.init.zeros_(self.layer.bias)

    def forecast(self, inputs: ModelInputs) -> Tensor:  # (B, H, N, Q)
        """Quantiles after the last row, from the last L rows."""
        output = self.har(*inputs[:7], last_rows=1)
        last = HarOutput(*(x[:, -1] for x in output))
        first = inputs.prices.shape[1] - self.config.lookback
        window = scale_inputs(inputs, self.har.scale).map(lambda x: x[:, first:])
        quantiles: Tensor = self.calibrated(*self.raw(self.outputs(window), last))
        return torch.where(torch.isfinite(last.log_scale).unsqueeze(-1), quantiles, torch.nan)

    def calibrated(self, r: Tensor, w: Tensor) -> Tensor:  # (B, H, N, Q), (B, H, N) -> (B, H, N, Q)
        """Quantiles r + w d, sorted."""
        return (r + w.unsqueeze(-1) * self.adjustment.to(r)).sort(-1).values

    def raw(self, output: Any, last: HarOutput) -> tuple[Tensor, Tensor]:  # (B, H, N, Q), (B, H, N)
        """r and w of the `outputs` of windows, and of the output of `Har` at their last rows (B, ...)."""
        # zero and one for a symbol in its warm-up, whose forecast is NaN: a NaN here would reach the gradient of others
        shift = torch.where(torch.isfinite(last.shift), last.shift, 0.0)
        sigma = torch.where(torch.isfinite(last.log_scale), last.log_scale, 0.0).exp()
        normal = self.normal.to(sigma)
        if self.layer is not None:
            bend = output.to(sigma).unflatten(-1, (*sigma.shape[1:], len(normal)))
            return shift.unsqueeze(-1) + sigma.unsqueeze(-1) * (normal + bend), sigma
        if isinstance(output, Distribution):
            r = quantiles_of(output, self.levels.to(sigma), sigma).to(sigma)
        elif output.dim() == 4:
            r = output.to(sigma).sort(-1).values
        else:
            point, w = (shift, output.to(sigma)) if self.config.output == "scale" else (output.to(sigma), sigma)
            return point.unsqueeze(-1) + w.unsqueeze(-1) * normal, w
        return r, (r[..., -1] - r[..., 0]).clamp(min=NARROWEST)

    def outputs(self, window: ModelInputs) -> Any:
        """What the network returns of windows: a distribution, a tensor (B, H, N[, Q]), or (B, H N Q) of `layer`."""
        further = {name: getattr(window, name) for name in self.asks}
        output = self.network(self.visible(window.prices), **further)
        output = output[0] if isinstance(output, tuple) else output
        if self.layer is not None:
            return self.layer(output[:, -1] if output.dim() == 3 else output)
        return output

    def visible(self, prices: Tensor) -> Tensor:  # (B, L, N) -> (B, L, N)
        """What the network sees of prices, in its dtype."""
        log = filled_log_prices(prices)
        if self.config.inputs == "prices":
            return log.exp().to(self._dtype())
        return ((self.plain(log) - self.mean.to(log)) / self.deviation.to(log)).to(self._dtype())

    def plain(self, log: Tensor) -> Tensor:  # (B, L, N) -> (B, L, N)
        """Returns or log prices, not standardized; the return of the first row is zero."""
        if self.config.inputs == "log prices":
            return log
        return torch.cat([torch.zeros_like(log[:, :1]), log[:, 1:] - log[:, :-1]], 1)

    @property
    def forecasts_median(self) -> bool:
        """Whether the network forecasts the median itself; a scale is one about the location of `Har`."""
        return self.layer is not None or self.config.output != "scale"

    def correction(self, har_output: HarOutput) -> Tensor:
        raise NotImplementedError("a network on windows of prices has no correction of the scale of `Har`")

    def _dtype(self) -> torch.dtype:
        floats = (x.dtype for x in self.network.parameters() if x.is_floating_point())
        return next(floats, torch.float32)

    def example(self) -> Tensor:  # (2, L, N)
        """Windows of what the network sees, as an example of their shape."""
        row = torch.tensor([1.0, 2.0], dtype=self._dtype())[:, None, None]
        return row.expand(2, self.config.lookback, self.har.assets)

    @torch.no_grad()
    def _features(self) -> int | None:
        """Number of features of the network, or None if it returns what `raw` takes."""
        N, H, Q, L = self.har.assets, len(self.config.har.horizons), len(self.config.har.levels), self.config.lookback
        if self.asks:  # a network that asks for more than prices returns a forecast
            return None
        window = self.example()
        was_training = self.network.training
        try:
            output = self.network.eval()(window)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            got = f"{type(error).__name__} for a window of shape {tuple(window.shape)}: {error}"
            raise ValueError(_rule(H, N, Q, got.partition("\n")[0])) from error
        self.network.train(was_training)
        if isinstance(output, Distribution):
            if tuple(output.batch_shape) != (2, H, N):
                raise ValueError(_rule(H, N, Q, f"a distribution of batch shape {tuple(output.batch_shape)}"))
            return None
        output = output[0] if isinstance(output, tuple) else output
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        if not isinstance(output, Tensor) or not output.is_floating_point():
            raise ValueError(_rule(H, N, Q, f"{shape}"))
        if shape in ((2, H, N, Q), (2, H, N)):
            return None
        if output.dim() == 2 or (output.dim() == 3 and shape[:2] == (2, L)):
            return int(output.shape[-1])
        raise ValueError(_rule(H, N, Q, f"{shape} of a batch of 2 windows of {L} rows"))


def _rule(H: int, N: int, Q: int, received: str) -> str:
    return (
        f"model: the network must return (B, H, N, Q) = (B, {H}, {N}, {Q}), (B, H, N), a distribution, or features "
        f"(B, L, F) or (B, F); got {received}"
    )


def make_network(factory: Any, known: dict[str, Any], settings: dict[str, Any]) -> nn.Module:
    """The network of a factory, called with its settings, and with what its signature asks for by name.

    Raises:
        TypeError: it needs another argument, or returns no Module.
        ValueError: it has no argument of the name of a setting.
    """
    check_settings(factory, settings)
    arguments = arguments_of(factory)
    if unknown := [p.name for p in arguments if p.default is p.empty and p.name not in {**known, **settings}]:
        rule = "what makes a model may ask for assets, horizons, levels and lookback"
        got = f"{import_path(factory)} needs {', '.join(unknown)}"
        raise TypeError(f"model: {rule}; {got}: give it a default, or pass partial({import_path(factory)}, ...)")
    network = make(factory, **{p.name: known[p.name] for p in arguments if p.name in known}, **settings)
    if not isinstance(network, nn.Module):
        raise TypeError(f"model: {import_path(factory)} must return a Module; got {type(network).__name__}")
    return network


def make(factory: Any, /, *arguments: Any, **settings: Any) -> Any:
    """Call what makes a network; ValueError that names it where its own code raises an error."""
    try:
        return factory(*arguments, **settings)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise ValueError(f"model: {import_path(factory)} must make a network of its settings; got {got}") from error


def check_settings(factory: Any, settings: dict[str, Any]) -> None:
    """Raise ValueError for a setting that is no argument of what makes a network, which may take any name."""
    names = [p.name for p in arguments_of(factory) if p.name not in GIVEN]
    unknown = [name for name in settings if name not in names]
    if unknown and (set(unknown) & set(GIVEN) or not inspect.getfullargspec(factory).varkw):
        rule = f"settings must be among the arguments of {import_path(factory)}, {', '.join(names) or 'which has none'}"
        raise ValueError(f"model: {rule}; got {', '.join(unknown)}")


def filled_log_prices(prices: Tensor) -> Tensor:  # (B, L, N) -> (B, L, N)
    """Log prices of windows: the last known one where one is missing, the first known one before it.

    >>> filled_log_prices(torch.tensor([[[torch.nan], [1.0], [torch.nan]]])).flatten()
    tensor([0., 0., 0.])
    """
    known = (prices > 0) & (prices < torch.inf)
    log = torch.where(known, prices, 1.0).log()
    before = carry_forward(log, known, Past(), "log")
    seen = carry_forward(torch.ones_like(log), known, Past(), "seen") > 0
    # the first known price: the one carried backward
    after = carry_forward(log.flip(1), known.flip(1), Past(), "log").flip(1)
    return torch.where(seen, before, after)


def quantiles_of(distribution: Distribution, levels: Tensor, sigma: Tensor) -> Tensor:  # (B, H, N, Q)
    """Quantiles of a distribution of batch shape (B, H, N), by `icdf` or halving of an interval of its `cdf`."""
    tau = levels.view(-1, *(1 for _ in distribution.batch_shape))  # (Q, 1, 1, 1)
    try:
        return distribution.icdf(tau.to(torch.float32)).movedim(0, -1)
    except NotImplementedError:
        pass
    high = 64 * sigma.expand(len(levels), *sigma.shape)
    low = -high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = distribution.cdf(middle.to(torch.float32)) < tau
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    quantiles = (low + high) / 2
    if torch.is_grad_enabled():  # of the implicit function F(q) = tau: dq = -dF / f, without a change of its value
        at = quantiles.detach().to(torch.float32)
        density = distribution.log_prob(at).exp().detach().clamp(min=torch.finfo(torch.float32).tiny)
        change = (tau - distribution.cdf(at)) / density
        quantiles = quantiles.detach() + (change - change.detach())
    return quantiles.movedim(0, -1)
