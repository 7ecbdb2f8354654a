"""Temporal convolutional network: dilated causal convolutions with batch norm, in residual blocks."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.types import Device

from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity.nn._fused import ConvBN1d


class TCN(nn.Module):
    """Residual blocks of dilated causal convolutions; block k has dilation 2^k.

    A block, with W a convolution of kernel 1 (the identity if the width does not change):

        y = relu(W x + relu(conv_bn(relu(conv_bn(x)))))

    Args:
        input_size: F, the number of features of a row.
        channels: width of each block.
        kernel_size: taps of each convolution.
        dropout: probability that an output of a convolution is dropped in training.
        momentum: momentum of the running statistics, as in `torch.nn.BatchNorm1d`.

    Shape:
        x (B, T, F) -> (B, T, channels[-1]). A row with a NaN feature counts as zeros, like the rows before the
        first.

    In evaluation mode row t depends on the `receptive_field` rows up to t only. In training mode batch norm uses the
    moments of all rows of the batch, later ones included: such outputs are not forecasts.

    Raises:
        ValueError, TypeError: a size is below 1, dropout is outside [0, 1), or x is not (B, T, F).

    References:
        Bai, Kolter, Koltun (2018). An empirical evaluation of generic convolutional and recurrent networks for sequence
        modeling. arXiv:1803.01271. It uses weight norm; here it is the batch norm of `ops.conv_bn`.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.TCN(13, (16, 16, 16))
        >>> layer.receptive_field, layer(torch.randn(4, 60, 13)).shape
        (29, torch.Size([4, 60, 16]))
    """

    def __init__(
        self,
        input_size: int,
        channels: Sequence[int],
        kernel_size: int = 3,
        dropout: float = 0.0,
        momentum: float | None = 0.1,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("TCN", 1, input_size=input_size, kernel_size=kernel_size)
        if not channels:
            raise_invalid("TCN", "channels must not be empty", channels=tuple(channels))
        for width in channels:
            check_integer("TCN", 1, channels=width)
        if not 0 <= dropout < 1:
            raise_invalid("TCN", "dropout must be in [0, 1)", dropout=dropout)
        widths = [input_size, *channels]
        options: dict[str, Any] = {"momentum": momentum, "device": device, "dtype": dtype}
        self.input_size, self.kernel_size = input_size, kernel_size
        self.blocks = nn.ModuleList(
            _Block(widths[k], widths[k + 1], kernel_size, 2**k, dropout, options) for k in range(len(channels))
        )

    @property
    def receptive_field(self) -> int:
        """Number of rows, the current one included, that an output depends on."""
        return 1 + 2 * (self.kernel_size - 1) * ((1 << len(self.blocks)) - 1)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, F) -> (B, T, C)
        """Output of the last block at every row."""
        if x.dim() != 3 or x.shape[-1] != self.input_size:
            raise_invalid("TCN", f"x must be (B, T, F) with F = {self.input_size}", x=x)
        y = x.masked_fill(x.isnan().any(-1, keepdim=True), 0.0).mT
        for block in self.blocks:
            y = block(y)
        return y.mT


class _Block(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, kernel: int, dilation: int, dropout: float, options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.first = ConvBN1d(inputs, outputs, kernel, padding="causal", dilation=dilation, bias=False, **options)
        self.second = ConvBN1d(outputs, outputs, kernel, padding="causal", dilation=dilation, bias=False, **options)
        device, dtype = options["device"], options["dtype"]
        self.shortcut = (
            nn.Identity() if inputs == outputs else nn.Conv1d(inputs, outputs, 1, device=device, dtype=dtype)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, T) -> (B, D, T)
        y = self.dropout(torch.relu(self.first(x)))
        y = self.dropout(torch.relu(self.second(y)))
        return torch.relu(self.shortcut(x) + y)
