"""Convolution or linear layer fused with batch norm; the backward pass recomputes from the input."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.types import Device

from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity import ops
from torchcommodity.ops import BatchNormOutput, ConvolutionSize

Convolution = nn.Conv1d | nn.Conv2d
Norm = nn.BatchNorm1d | nn.BatchNorm2d


class _ConvBN(nn.Module):
    """Base of `ConvBN1d` and `ConvBN2d`: `conv` and `norm` own parameters, running statistics and settings."""

    def __init__(self, conv: Convolution, norm: Norm, padding: ConvolutionSize | str, recompute: bool = True) -> None:
        super().__init__()
        self.conv, self.norm, self.padding, self.recompute = conv, norm, padding, recompute

    def forward(self, x: Tensor) -> Tensor:  # (B, C, ...) -> (B, D, ...)
        """Normalize by batch statistics in training, by running statistics in evaluation."""
        conv, norm = self.conv, self.norm
        settings = _settings(norm)
        result = ops.conv_bn(
            x,
            conv.weight,
            conv.bias,
            **settings,
            stride=conv.stride,
            padding=self.padding,
            dilation=conv.dilation,
            groups=conv.groups,
            recompute=self.recompute,
        )
        _track(norm, settings, result)
        return result.output

    def extra_repr(self) -> str:
        return f"padding={self.padding!r}{'' if self.recompute else ', recompute=False'}"


class ConvBN1d(_ConvBN):
    """`torch.nn.Conv1d` and `BatchNorm1d` in one layer: same arguments, results and statistics.

    Only the input is saved for the backward pass, which recomputes the convolution: half the memory at equal widths.
    `recompute=False` saves the convolution too: the memory of torch, and as many convolutions as it computes.

    Zero padding only; `padding="causal"` pads on the left, so that an output does not depend on later positions. In
    training mode the batch statistics cover all positions.

    Shape:
        x (B, C, T) -> (B, D, T').

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.ConvBN1d(5, 8, 3, padding="causal", dilation=2)
        >>> layer(torch.randn(4, 5, 60)).shape
        torch.Size([4, 8, 60])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int | str = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        recompute: bool = True,
    ) -> None:
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        check_integer("ConvBN1d", 1, in_channels=in_channels, out_channels=out_channels)
        conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride, 0, dilation, groups, bias, **factory)
        norm = nn.BatchNorm1d(out_channels, eps, momentum, affine, track_running_stats, **factory)
        super().__init__(conv, norm, padding, recompute)

    @classmethod
    def from_modules(cls, conv: nn.Conv1d, norm: nn.BatchNorm1d) -> "ConvBN1d":
        """Fuse two torch layers, sharing their parameters and running statistics."""
        return _from_modules(cls, conv, norm, (nn.Conv1d, nn.BatchNorm1d))  # type: ignore[no-any-return]


class ConvBN2d(_ConvBN):
    """`torch.nn.Conv2d` and `BatchNorm2d` in one layer: same arguments, results and statistics.

    Only the input is saved for the backward pass, which recomputes the convolution: half the memory at equal widths.
    `recompute=False` saves the convolution too: the memory of torch, and as many convolutions as it computes.

    Zero padding only. Like `Conv2d`, the layer keeps the memory format `torch.channels_last` of its input.

    Shape:
        x (B, C, H, W) -> (B, D, H', W').

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> nn.ConvBN2d(1, 16, 3, padding=1)(torch.randn(4, 1, 20, 20)).shape
        torch.Size([4, 16, 20, 20])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        recompute: bool = True,
    ) -> None:
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        check_integer("ConvBN2d", 1, in_channels=in_channels, out_channels=out_channels)
        conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride, 0, dilation, groups, bias, **factory)
        norm = nn.BatchNorm2d(out_channels, eps, momentum, affine, track_running_stats, **factory)
        super().__init__(conv, norm, padding, recompute)

    @classmethod
    def from_modules(cls, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> "ConvBN2d":
        """Fuse two torch layers, sharing their parameters and running statistics."""
        return _from_modules(cls, conv, norm, (nn.Conv2d, nn.BatchNorm2d))  # type: ignore[no-any-return]


class LinearBNReLU(nn.Module):
    """`torch.nn.Linear`, `BatchNorm1d` and `ReLU` in one layer: same arguments, results and statistics.

    Only the input is saved for the backward pass, which recomputes the product: a third of what the three layers save
    at equal widths, or two thirds with `recompute=False`, which saves the product too. Unlike `BatchNorm1d` it accepts
    any number of leading axes and averages over all of them.

    Shape:
        x (..., C) -> (..., D).

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> nn.LinearBNReLU(20, 64)(torch.randn(32, 60, 20)).shape
        torch.Size([32, 60, 64])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        recompute: bool = True,
    ) -> None:
        super().__init__()
        self.recompute = recompute
        check_integer("LinearBNReLU", 1, in_features=in_features, out_features=out_features)
        self.linear = nn.Linear(in_features, out_features, bias, device, dtype)
        self.norm = nn.BatchNorm1d(out_features, eps, momentum, affine, track_running_stats, device, dtype)

    @classmethod
    def from_modules(cls, linear: nn.Linear, norm: nn.BatchNorm1d) -> "LinearBNReLU":
        """Fuse two torch layers, sharing their parameters and running statistics."""
        _check_kinds("LinearBNReLU", {"linear": (linear, nn.Linear), "norm": (norm, nn.BatchNorm1d)})
        if linear.out_features != norm.num_features:
            rule = "norm.num_features must equal linear.out_features"
            raise_invalid("LinearBNReLU", rule, linear=linear, norm=norm)
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer.linear, layer.norm, layer.recompute = linear, norm, True
        return layer

    def forward(self, x: Tensor) -> Tensor:  # (..., C) -> (..., D)
        """Normalize by batch statistics in training, by running statistics in evaluation."""
        linear, norm = self.linear, self.norm
        settings = _settings(norm)
        result = ops.linear_bn_relu(x, linear.weight, linear.bias, **settings, recompute=self.recompute)
        _track(norm, settings, result)
        return result.output


def _check_kinds(layer: str, modules: dict[str, tuple[nn.Module, type[nn.Module]]]) -> None:
    for name, (module, kind) in modules.items():
        if not isinstance(module, kind):
            raise_invalid(
                layer, f"{name} must be a torch.nn.{kind.__name__}", TypeError, **{name: type(module).__name__}
            )


def _from_modules(cls: Any, conv: Any, norm: Any, kinds: tuple[type[nn.Module], type[nn.Module]]) -> Any:
    _check_kinds(cls.__name__, {"conv": (conv, kinds[0]), "norm": (norm, kinds[1])})
    if conv.out_channels != norm.num_features:
        raise_invalid(cls.__name__, "norm.num_features must equal conv.out_channels", conv=conv, norm=norm)
    if conv.padding_mode != "zeros":
        raise_invalid(cls.__name__, 'conv.padding_mode must be "zeros"', padding_mode=conv.padding_mode)
    layer = cls.__new__(cls)
    _ConvBN.__init__(layer, conv, norm, conv.padding)
    return layer


def _settings(norm: Norm) -> dict[str, Any]:
    """Operator arguments of a batch norm; without running statistics it uses the batch in evaluation mode too."""
    mean = norm.running_mean
    return {
        "gamma": norm.weight,
        "beta": norm.bias,
        "running_mean": mean,
        "running_variance": norm.running_var,
        "training": norm.training or mean is None,
        "eps": norm.eps,
    }


def _track(norm: Norm, settings: dict[str, Any], result: BatchNormOutput) -> None:
    """Update the running statistics as torch does: unbiased variance, `momentum` or a cumulative average."""
    if not (norm.training and norm.track_running_stats):
        return
    mean, variance, batches = settings["running_mean"], settings["running_variance"], norm.num_batches_tracked
    assert batches is not None
    n = result.output.numel() // result.mean.numel()
    batches.add_(1)
    factor = batches.to(mean.dtype).reciprocal() if norm.momentum is None else norm.momentum
    mean.lerp_(result.mean.detach(), factor)
    variance.lerp_(result.variance.detach() * (n / (n - 1)), factor)
