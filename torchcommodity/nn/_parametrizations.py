"""Constrained parameters: positive, in an interval, orthogonal per gate.

`Positive` and `Interval` are for `torch.nn.utils.parametrize.register_parametrization(layer, name, constraint)`.
"""

import math
from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from torch_opkit.arguments import raise_invalid
from torchcommodity.nn._lstm import LSTM
from torchcommodity.nn._orthogonal import Orthogonal

NOT_AN_LSTM = "lstm must be a torchcommodity.nn.LSTM, which loads the state dict of a torch.nn.LSTM"


class Positive(nn.Module):
    """Positive parameter p = unit softplus(x), for an unconstrained x; assigned values are recovered exactly.

    The weights of a new layer have both signs, so make them positive before the constraint is registered.

    Args:
        unit: typical size of p, a number or a Tensor that broadcasts to p. An optimizer step of size s in x changes
            such a p by about s `unit`. For example 2e-4 for a daily variance, 21 for a half-life in rows.

    Raises:
        ValueError: `unit` or an assigned value is not positive.
        TypeError: `unit` is neither a number nor a Tensor.

    References:
        Dugas et al. (2001). Incorporating second-order functional knowledge for better option pricing. NIPS 13.

    Example:
        >>> import torch
        >>> from torch.nn.utils import parametrize
        >>> from torchcommodity import nn
        >>> layer = torch.nn.Linear(2, 1)
        >>> layer.weight.data.copy_(torch.tensor([[0.5, -2.0]])).abs_().clamp_(min=1e-6)
        tensor([[0.5000, 2.0000]])
        >>> layer = parametrize.register_parametrization(layer, "weight", nn.Positive())
        >>> layer.weight
        tensor([[0.5000, 2.0000]], grad_fn=<MulBackward0>)
    """

    unit: float | Tensor

    def __init__(self, unit: float | Tensor = 1.0) -> None:
        super().__init__()
        if not isinstance(unit, (int, float, Real, Tensor)):
            raise_invalid("Positive", "unit must be a number or a Tensor", TypeError, unit=unit)
        value = unit.detach().clone() if isinstance(unit, Tensor) else torch.tensor(unit, dtype=torch.double)
        _check("Positive", "unit must be finite and > 0", "unit", value, value.isfinite() & (value > 0))
        if isinstance(unit, Tensor):
            self.register_buffer("unit", value, persistent=False)
        else:
            self.unit = float(unit)  # exact in every dtype, on every device

    def forward(self, x: Tensor) -> Tensor:
        """p from x."""
        return self._unit_like(x) * F.softplus(x, threshold=40)  # torch's default threshold, 20, would lose 1e-10

    def right_inverse(self, p: Tensor) -> Tensor:
        """x = ln(e^y - 1) with y = p / unit, in a form that is accurate for small and large y."""
        remedy = "first make it so, for example by layer.weight.data.abs_().clamp_(min=1e-6)"
        _check("Positive", f"the parameter must be > 0; {remedy}", "parameter", p, p > 0)
        y = p / self._unit_like(p)
        return y + torch.log(-torch.expm1(-y))

    def _unit_like(self, x: Tensor) -> float | Tensor:
        return self.unit.to(x) if isinstance(self.unit, Tensor) else self.unit

    def extra_repr(self) -> str:
        unit = self.unit if isinstance(self.unit, Tensor) else torch.tensor(self.unit, dtype=torch.double)
        return f"unit={unit.item() if unit.dim() == 0 else tuple(unit.shape)}"


class Interval(nn.Module):
    """Parameter in an open interval: p = low + (high - low) sigmoid(x), for an unconstrained x.

    Args:
        low, high: bounds, exclusive.

    Raises:
        ValueError: low >= high, a bound is infinite, or an assigned value is not strictly between them.

    Example:
        >>> import torch
        >>> from torch.nn.utils import parametrize
        >>> from torchcommodity import nn
        >>> layer = parametrize.register_parametrization(torch.nn.PReLU(), "weight", nn.Interval(0, 1))
        >>> layer.weight
        tensor([0.2500], grad_fn=<AddBackward0>)
        >>> torch.nn.init.constant_(layer.parametrizations.weight.original, 3.0)
        Parameter containing: tensor([3.], requires_grad=True)
        >>> layer.weight
        tensor([0.9526], grad_fn=<AddBackward0>)
    """

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        if not -math.inf < low < high < math.inf:
            raise_invalid("Interval", "low must be < high, and both finite", low=low, high=high)
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        """p from x."""
        return self.low + (self.high - self.low) * torch.sigmoid(x)

    def right_inverse(self, p: Tensor) -> Tensor:
        """x = ln((p - low) / (high - p))."""
        margin = (self.high - self.low) / 100  # at a bound itself the gradient would be zero
        remedy = f"layer.weight.data.clamp_({self.low + margin:.6g}, {self.high - margin:.6g})"
        expected = (
            f"the parameter must be between {self.low} and {self.high}; first make it so, for example by {remedy}"
        )
        _check("Interval", expected, "parameter", p, (p > self.low) & (p < self.high))
        return torch.log(p - self.low) - torch.log(self.high - p)

    def extra_repr(self) -> str:
        return f"{self.low}, {self.high}"


def _check(operation: str, expected: str, name: str, x: Tensor, valid: Tensor) -> None:
    """Raise with the number of invalid values and the extremes of x: the values themselves would fill pages."""
    if bool(valid.all()):
        return
    if x.numel() == 1:
        raise_invalid(operation, expected, **{name: x.item()})
    invalid = f"{int((~valid).sum())} of {x.numel()} values"
    smallest, largest = (float(f"{value.item():.4g}") for value in (x.min(), x.max()))
    raise_invalid(operation, expected, invalid=invalid, smallest=smallest, largest=largest, **{name: x})


def orthogonal_gates(lstm: LSTM) -> LSTM:
    """Constrain the recurrent weights of every gate (input, forget, cell, output) of every layer to be orthogonal.

    `weight_hh` (4 H, H) consists of four blocks W with W W^T = I, each parametrized by the matrix exponential
    (`nn.Orthogonal`) and initialized with the orthogonal factor of the current block. The
    blocks of a single orthogonal (4 H, H) matrix would not be orthogonal themselves and would shrink the state.

    Args:
        lstm: a `torchcommodity.nn.LSTM`, changed in place. It takes the arguments of a `torch.nn.LSTM` and loads its
            state dict. That layer keeps a second list of its weights: with computed weights in it, it can no longer
            be copied after a call, and its export warns.

    Returns:
        `lstm`. Its state dict holds the unconstrained parameters instead of `weight_hh`.

    Raises:
        TypeError: `lstm` is not a `torchcommodity.nn.LSTM`.
        ValueError: it is already parametrized.

    References:
        Arjovsky, Shah, Bengio (2016). Unitary evolution recurrent neural networks. arXiv:1511.06464.
        Lezcano-Casado (2019). Trivializations for gradient-based optimization on manifolds. arXiv:1909.09501.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> lstm = nn.orthogonal_gates(nn.LSTM(3, 5, batch_first=True))
        >>> blocks = lstm.weight_hh_l0.unflatten(0, (4, 5))
        >>> torch.allclose(blocks @ blocks.mT, torch.eye(5), atol=1e-6)
        True
        >>> lstm(torch.randn(4, 60, 3))[0].shape
        torch.Size([4, 60, 5])
    """
    if not isinstance(lstm, LSTM):
        raise_invalid("orthogonal_gates", NOT_AN_LSTM, TypeError, lstm=f"{type(lstm).__module__}.{type(lstm).__name__}")
    if parametrize.is_parametrized(lstm):
        raise_invalid("orthogonal_gates", "lstm must not be parametrized already", lstm=lstm)
    for name in [name for name, _ in lstm.named_parameters() if name.startswith("weight_hh")]:
        parametrize.register_parametrization(lstm, name, _Gates())
        parametrization = lstm.get_submodule(f"parametrizations.{name}")
        parametrize.register_parametrization(parametrization, "original", Orthogonal())
    return lstm


class _Gates(nn.Module):
    """(4, H, H), one matrix per gate, as the (4 H, H) weight of an LSTM."""

    def forward(self, blocks: Tensor) -> Tensor:
        return blocks.flatten(0, 1)

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight.reshape(4, -1, weight.shape[-1])
