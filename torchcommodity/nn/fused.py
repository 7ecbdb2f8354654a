"""Layers that keep their input for the backward pass, and nothing else: convolution or linear layer with batch norm."""

from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity import ops
from torchcommodity.opkit.door import refuse
from torchcommodity.ops.fused.conv_bn import Size


def _track(norm: nn.modules.batchnorm._BatchNorm, found: ops.Normalised) -> None:
    """Moves the running statistics as torch's batch normalisation does, by the unbiased variance."""
    if not (norm.training and norm.track_running_stats):
        return
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    with torch.no_grad():
        values = found.output.numel() // found.mean.numel()
        norm.num_batches_tracked.add_(1)
        factor = 1 / norm.num_batches_tracked if norm.momentum is None else norm.momentum
        norm.running_mean.add_(factor * (found.mean - norm.running_mean))
        norm.running_var.add_(factor * (found.variance * (values / (values - 1)) - norm.running_var))


def _statistics(norm: nn.modules.batchnorm._BatchNorm) -> dict[str, Any]:
    """The arguments of the operator that a batch normalisation holds."""
    return {
        "gamma": norm.weight,
        "beta": norm.bias,
        "running_mean": norm.running_mean,
        "running_variance": norm.running_var,
        "training": norm.training or norm.running_mean is None,
        "eps": norm.eps,
    }


class _ConvBN(nn.Module):
    """The layer of any number of axes: a convolution and a batch normalisation that own the parameters."""

    conv: nn.Conv1d | nn.Conv2d
    norm: nn.BatchNorm1d | nn.BatchNorm2d
    padding: Size | str

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, ...) to (B, D, ...)."""
        found = ops.conv_bn(
            x,
            self.conv.weight,
            self.conv.bias,
            **_statistics(self.norm),
            stride=self.conv.stride,
            padding=self.padding,
            dilation=self.conv.dilation,
            groups=self.conv.groups,
        )
        _track(self.norm, found)
        return found.output
