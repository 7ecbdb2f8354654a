"""Layers of long-long-term memory, with the constructors of torch's recurrent layers."""

import torch
from torch import Tensor, nn
from torch.types import Device

from torch_opkit.arguments import check_integer
from torchcommodity import ops
from torchcommodity.nn._recurrence import (
    RecurrenceState,
    check_row,
    from_batch_first,
    init_uniform,
    initial_state,
    start,
    step,
    to_batch_first,
    update,
    zero_state,
)


class LLTM(nn.Module):
    """Long-long-term memory (LLTM) over a sequence: `ops.lltm` with its parameters.

    Args:
        input_size: F, the number of features of a row.
        hidden_size: H, the number of features of the state.
        bias: whether to use b.
        batch_first: input and output are (B, T, F) instead of (T, B, F).

    Shape:
        input (B, T, F), (T, B, F), or (T, F) without batch; hx a pair of (1, B, H), or without B, zero by default ->
        output (B, T, H), and the state after the last row. A row with a NaN input is missing and leaves the state
        unchanged.

    Causal, no warm-up. The parameters are `weight` (3 H, H + F), columns for h first, and `bias` (3 H,).

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> output, (h, c) = nn.LLTM(3, 5, batch_first=True)(torch.randn(4, 60, 3))
        >>> output.shape, h.shape
        (torch.Size([4, 60, 5]), torch.Size([1, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight, self.bias = _lltm_parameters("LLTM", input_size, hidden_size, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        init_uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: RecurrenceState | None = None) -> tuple[Tensor, RecurrenceState]:
        """h at every row, and (h, c) after the last one."""
        x = to_batch_first("LLTM", input, self.input_size, self.batch_first)
        h, c = initial_state("LLTM", x, hx, 1, self.hidden_size)
        output, state = ops.lltm(x, (h[0], c[0]), self.weight, self.bias)
        return from_batch_first(output, [state], input.dim() == 2, self.batch_first)

    def start(self, history: Tensor) -> dict[str, Tensor]:
        """The state after the rows of `history`, from a zero state; for `step` and `update`."""
        return start(self, history)

    def step(self, state: dict[str, Tensor], row: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The state after one more row (B, F) or (F,), and the output (B, H) or (H,).

        Equal to one call on all rows up to rounding: a matrix product of one row rounds differently. `state` is not
        written to, and no gradient is recorded.
        """
        return step(self, state, row, 1 if self.batch_first and row.dim() == 2 else 0)

    def update(self, state: dict[str, Tensor], rows: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The state after more rows, in the layout of `forward`, and the output at these rows."""
        return update(self, state, rows)

    def extra_repr(self) -> str:
        layout = ", batch_first=True" if self.batch_first else ""
        return f"{self.input_size}, {self.hidden_size}{', bias=False' if self.bias is None else ''}{layout}"


class LLTMCell(nn.Module):
    """One step of long-long-term memory: `ops.lltm_cell` with the parameters of `LLTM`.

    Args:
        input_size: F, the number of features of a row.
        hidden_size: H, the number of features of the state.
        bias: whether to use b.

    Shape:
        input (B, F) or (F,), hx a pair of (B, H) or (H,), zero by default -> the pair (h', c').

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> h, c = nn.LLTMCell(3, 5)(torch.randn(4, 3))
        >>> h.shape
        torch.Size([4, 5])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight, self.bias = _lltm_parameters("LLTMCell", input_size, hidden_size, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        init_uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: RecurrenceState | None = None) -> RecurrenceState:
        """(h', c') after the step."""
        check_row("LLTMCell", input, self.input_size)
        hx = zero_state(input, *input.shape[:-1], self.hidden_size) if hx is None else hx
        return ops.lltm_cell(input, hx, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{', bias=False' if self.bias is None else ''}"


def _lltm_parameters(
    layer: str, input_size: int, hidden_size: int, bias: bool, device: Device, dtype: torch.dtype | None
) -> tuple[nn.Parameter, nn.Parameter | None]:
    check_integer(layer, 1, input_size=input_size, hidden_size=hidden_size)
    weight = torch.empty(3 * hidden_size, hidden_size + input_size, device=device, dtype=dtype)
    return nn.Parameter(weight), nn.Parameter(weight.new_empty(3 * hidden_size)) if bias else None
