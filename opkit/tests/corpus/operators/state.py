"""Operators that remember earlier calls, and results that change from call to call."""

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, rand, randn, series

NAMES = ("stale_cache",)  # what a state that a second call notices may also be called
_by_shape: dict[object, Tensor] = {}


@fault("stale_cache", rows=("wrong_gradient",), samples=[(rand(3, 4),)])
def scale_cached_by_shape(x: Tensor) -> Tensor:
    """The mean of the first input with this shape is used for all later ones."""
    if x.shape not in _by_shape:
        _by_shape[x.shape] = x.detach().mean()
    return x / _by_shape[x.shape].to(x)


_by_shape_custom: dict[object, Tensor] = {}


@fault("stale_cache", samples=[(rand(3, 4),)])
@custom_op(backward=lambda ctx, grad: grad)
def result_cached_by_shape(x: Tensor) -> Tensor:
    if x.shape not in _by_shape_custom:
        _by_shape_custom[x.shape] = x.clone()
    return _by_shape_custom[x.shape].clone()


_by_pointer: dict[int, Tensor] = {}


@fault("stale_cache", samples=[(rand(3, 4),)])
@custom_op()
def cached_by_data_ptr(x: Tensor) -> Tensor:
    """A changed tensor in the same memory gets the old result."""
    return _by_pointer.setdefault(x.data_ptr(), x.exp()).clone()


_by_id: dict[int, Tensor] = {}


@fault("stale_cache", samples=[(rand(3, 4),)])
@custom_op()
def cached_by_id(x: Tensor) -> Tensor:
    return _by_id.setdefault(hash((x.device, tuple(x.shape), x.dtype)), x.cumsum(-1)).clone()


_lowest = [float("inf")]


@fault("nondeterministic", rows=NAMES, samples=[(rand(3, 4),)])
def above_the_lowest_so_far(x: Tensor) -> Tensor:
    _lowest[0] = min(_lowest[0], float(x.detach().min()))
    return x - _lowest[0]


@fault("stale_cache", samples=[(rand(3, 4),)])
def scaled_by_first_call(x: Tensor) -> Tensor:
    if not hasattr(scaled_by_first_call, "scale"):
        scaled_by_first_call.scale = float(x.detach().mean())
    return x / scaled_by_first_call.scale


_by_first: dict[object, Tensor] = {}


@fault("stale_cache", samples=[(rand(3, 4),)])
@custom_op()
def cached_by_first_element(x: Tensor) -> Tensor:
    key = (x.shape, x.dtype, float(x.flatten()[0]))
    return _by_first.setdefault(key, x.cumsum(-1)).clone()


_by_sum: dict[object, Tensor] = {}


@fault("stale_cache", rows=("wrong_gradient",), samples=[(rand(3, 4),)])
def scale_cached_by_sum(x: Tensor) -> Tensor:
    key = (x.shape, x.dtype, round(float(x.detach().sum()), 6))
    return x * _by_sum.setdefault(key, x.detach().std(-1, keepdim=True))


class LevelOfFirstCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.level: float | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.level is None:
            self.level = float(x.detach().mean())
        return x - self.level


fault("stale_cache", samples=[(rand(3, 4),)])(LevelOfFirstCall)


@fault("nondeterministic", samples=[(rand(3, 4),)])
def dropout_left_on(x: Tensor) -> Tensor:
    return F.dropout(x, 0.5, training=True)


@fault("nondeterministic", samples=[(rand(3, 4),)])
@custom_op(backward=lambda ctx, grad: grad)
def adds_noise(x: Tensor) -> Tensor:
    return x + 0.01 * torch.randn_like(x)


@fault("nondeterministic", samples=[(rand(3, 4),)])
@custom_op()
def adds_time(x: Tensor) -> Tensor:
    return x + time.perf_counter() % 1.0


@fault("nondeterministic", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def random_permutation(x: Tensor) -> Tensor:
    return x[..., torch.randperm(x.shape[-1])]


_calls = [0]


class CountsCalls(Saved):
    """Warms up over its first calls."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        _calls[0] += 1
        return x * (1 + 1 / _calls[0])

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 + 1 / _calls[0])


fault("nondeterministic", rows=NAMES, samples=[(rand(3, 4),)])(CountsCalls)


class RandomBackward(Saved):
    """The gradient is sampled, the value is not."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0] * (torch.rand_like(grad) < 0.5) * 2


fault("nondeterministic", samples=[(rand(3, 4),)])(RandomBackward)


class RunningMean(nn.Module):
    """Accumulates in eval mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros((), dtype=torch.double))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean.to(x.dtype) + 0.1 * x.detach().mean()
        return x - self.mean


fault("nondeterministic", rows=NAMES, samples=[(rand(3, 4),)])(RunningMean)


class HiddenStateCarried(nn.Module):
    """Starts each call from the state that the call before left."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros_like(x[..., 0, :]) if self.state is None else self.state
        if state.shape != x[..., 0, :].shape:
            state = torch.zeros_like(x[..., 0, :])
        rows = []
        for t in range(x.shape[-2]):
            state = 0.9 * state.to(x.dtype) + 0.1 * x[..., t, :]
            rows.append(state)
        self.state = state.detach()
        return torch.stack(rows, -2)


fault("nondeterministic", rows=NAMES, **series())(HiddenStateCarried)

_first_window: list[int] = []


@fault("setting_ignored", rows=NAMES, settings={"window": [3, 5]}, **series())
def mean_with_first_window(x: Tensor, window: int) -> Tensor:
    """The window of the first call stays."""
    _first_window[:] = _first_window or [window]
    padded = F.pad(x, (0, 0, _first_window[0] - 1, 0), value=float("nan"))
    return padded.unfold(-2, _first_window[0], 1).mean(-1)


_weights: dict[int, Tensor] = {}


@fault("stale_cache", rows=("setting_ignored",), settings={"decay": [0.5, 0.9]}, **series())
def weights_cached_by_length(x: Tensor, decay: float) -> Tensor:
    """The key of the cache has the length, and not the decay."""
    steps = x.shape[-2]
    if steps not in _weights:
        t = torch.arange(steps)
        _weights[steps] = (decay ** (t[:, None] - t)).tril().double()
    return _weights[steps].to(x) @ x


_last: list[Tensor] = []


class SavesInGlobal(torch.autograd.Function):
    """Keeps the input in a global, so that two calls before one backward use the second's."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        _last[:] = [x]
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad * _last[0] ** 2


fault(
    "stale_cache", rows=("nondeterministic", "wrong_gradient", "gradgradcheck", "gradcheck"), samples=[(rand(3, 4),)]
)(SavesInGlobal)

_buffer = [torch.empty(0, dtype=torch.double)]


@fault("aliasing", rows=("nondeterministic", *NAMES, "no_aliasing", "input_changed"), samples=[(rand(3, 4),)])
@custom_op(backward=lambda ctx, grad: 2 * grad)
def shared_output_buffer(x: Tensor) -> Tensor:
    """The output of the next call overwrites this one's."""
    if _buffer[0].shape != x.shape or _buffer[0].dtype != x.dtype:
        _buffer[0] = torch.empty_like(x)
    return torch.mul(x, 2, out=_buffer[0])


@healthy(samples=[(rand(3, 4),)])
def dropout_without_dropping(x: Tensor) -> Tensor:
    return F.dropout(x, 0.0, training=True).square()


@healthy(samples=[(rand(3, 4),)])
@custom_op()
def seeded_mask(x: Tensor) -> Tensor:
    return x * _mask(x)


def _mask(x: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    return (torch.rand(x.shape, generator=generator) < 0.5).to(x)


class BatchNormInEval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, affine=False).double().eval()

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.norm.running_mean.to(x), self.norm.running_var.to(x), eps=1e-5, training=False)


healthy(samples=[(randn(5, 4),)])(BatchNormInEval)

_eye: dict[object, Tensor] = {}


@healthy(samples=[(rand(2, 3, 3) + torch.eye(3).double(),)])
def ridge_with_cached_identity(x: Tensor) -> Tensor:
    """The cache's key is complete: it holds a constant."""
    key = (x.shape[-1], x.dtype, x.device)
    if key not in _eye:
        _eye[key] = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return x.mT @ x + _eye[key]


class GruCell(nn.Module):
    """A module with weights and a fixed seed, in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.cell = nn.GRUCell(4, 3).double().eval()

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.cell(x, h)


healthy(samples=[(randn(5, 4), randn(5, 3, seed=1))])(GruCell)


class EmaBuffer(nn.Module):
    """Updates its buffer in training only; it is in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("level", torch.ones((), dtype=torch.double))
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.level = 0.9 * self.level + 0.1 * x.detach().mean()
        return x / self.level.to(x.dtype)


healthy(samples=[(rand(3, 4),)])(EmaBuffer)
