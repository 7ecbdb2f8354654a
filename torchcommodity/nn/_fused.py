"""Layers that keep nothing but their input for the backward pass: convolution or linear layer with batch norm."""

from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity import ops
from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops import BatchNormOutput, ConvolutionSize

Convolution = nn.Conv1d | nn.Conv2d
Norm = nn.BatchNorm1d | nn.BatchNorm2d


class _ConvBN(nn.Module):
    """What both have in common: `conv` and `norm` own the parameters, the running statistics and the settings."""

    def __init__(self, conv: Convolution, norm: Norm, padding: ConvolutionSize | str) -> None:
        super().__init__()
        self.conv, self.norm, self.padding = conv, norm, padding

    def forward(self, x: Tensor) -> Tensor:  # (B, C, ...) -> (B, D, ...)
        """Normalized by the batch in training, by the running statistics in evaluation."""
        found = ops.conv_bn(
            x,
            self.conv.weight,
            self.conv.bias,
            **_settings(self.norm),
            stride=self.conv.stride,
            padding=self.padding,
            dilation=self.conv.dilation,
            groups=self.conv.groups,
        )
        _track(self.norm, found)
        return found.output

    def extra_repr(self) -> str:
        return f"padding={self.padding!r}"


class ConvBN1d(_ConvBN):
    """`nn.Conv1d`, then `nn.BatchNorm1d`: their arguments, numbers and running statistics, for half of the memory.

    `padding` may also be "causal": zeros before only, so that an output sees no later position of its own series. In
    training the moments of the batch see every position still. Padding is with zeros.

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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride, 0, dilation, groups, bias, **kind)
        norm = nn.BatchNorm1d(out_channels, eps, momentum, affine, track_running_stats, **kind)
        super().__init__(conv, norm, padding)

    @classmethod
    def of(cls, conv: nn.Conv1d, norm: nn.BatchNorm1d) -> "ConvBN1d":
        """The layer that stands for two of torch's, and shares their parameters and running statistics with them."""
        return _of(cls, conv, norm)  # type: ignore[no-any-return]


class ConvBN2d(_ConvBN):
    """`nn.Conv2d`, then `nn.BatchNorm2d`: their arguments, numbers and running statistics, for half of the memory.

    Padding is with zeros.

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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride, 0, dilation, groups, bias, **kind)
        norm = nn.BatchNorm2d(out_channels, eps, momentum, affine, track_running_stats, **kind)
        super().__init__(conv, norm, padding)

    @classmethod
    def of(cls, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> "ConvBN2d":
        """The layer that stands for two of torch's, and shares their parameters and running statistics with them."""
        return _of(cls, conv, norm)  # type: ignore[no-any-return]


class LinearBNReLU(nn.Module):
    """`nn.Linear`, then `nn.BatchNorm1d` and `nn.ReLU`: their arguments, numbers and running statistics.

    For the backward pass it keeps its input, a third of what the three keep if they are as wide as it. Unlike
    `nn.BatchNorm1d` it takes any number of leading axes, and averages over all of them.

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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias, device, dtype)
        self.norm = nn.BatchNorm1d(out_features, eps, momentum, affine, track_running_stats, device, dtype)

    @classmethod
    def of(cls, linear: nn.Linear, norm: nn.BatchNorm1d) -> "LinearBNReLU":
        """The layer that stands for torch's, and shares their parameters and running statistics with them."""
        if linear.out_features != norm.num_features:
            raise_invalid("LinearBNReLU", "norm must be as wide as linear", linear=linear, norm=norm)
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer.linear, layer.norm = linear, norm
        return layer

    def forward(self, x: Tensor) -> Tensor:  # (..., C) -> (..., D)
        """Normalized by the batch in training, by the running statistics in evaluation."""
        found = ops.linear_bn_relu(x, self.linear.weight, self.linear.bias, **_settings(self.norm))
        _track(self.norm, found)
        return found.output


def _of(cls: Any, conv: Any, norm: Any) -> Any:
    if conv.out_channels != norm.num_features:
        raise_invalid(cls.__name__, "norm must have as many channels as conv gives", conv=conv, norm=norm)
    if conv.padding_mode != "zeros":
        raise_invalid(cls.__name__, 'conv must be padded with "zeros"', padding_mode=conv.padding_mode)
    layer = cls.__new__(cls)
    _ConvBN.__init__(layer, conv, norm, conv.padding)
    return layer


def _settings(norm: Norm) -> dict[str, Any]:
    """What a batch normalization tells its operator. Without running statistics, the batch serves in evaluation too."""
    return {
        "gamma": norm.weight,
        "beta": norm.bias,
        "running_mean": norm.running_mean,
        "running_variance": norm.running_var,
        "training": norm.training or norm.running_mean is None,
        "eps": norm.eps,
    }


def _track(norm: Norm, found: BatchNormOutput) -> None:
    """Move the running statistics as torch does: by the unbiased variance, by `momentum` or in equal parts."""
    if not (norm.training and norm.track_running_stats):
        return
    mean, variance, tracked = norm.running_mean, norm.running_var, norm.num_batches_tracked
    assert mean is not None
    assert variance is not None
    assert tracked is not None
    with torch.no_grad():
        values = found.output.numel() // found.mean.numel()
        tracked.add_(1)
        part = tracked.to(mean.dtype).reciprocal() if norm.momentum is None else norm.momentum
        mean.add_(part * (found.mean - mean))
        variance.add_(part * (found.variance * (values / (values - 1)) - variance))
