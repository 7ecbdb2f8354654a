"""LSTM layers with the constructors of `torch.nn`, for fullgraph compilation and export with dynamic shapes."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.types import Device

from torch_opkit.arguments import check_integer, raise_invalid
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


class LSTM(nn.Module):
    """Long short-term memory over `ops.lstm`; arguments, parameters and results as in `torch.nn.LSTM`.

    Unlike torch's layer it works with `torch.compile(fullgraph=True)` and exports with dynamic batch and time. The
    state dicts are interchangeable.

    Args:
        input_size: F, the number of features of a row.
        hidden_size: H, the number of features of the state.
        num_layers: number of stacked layers.
        bias: whether to use b_ih and b_hh.
        batch_first: input and output are (B, T, F) instead of (T, B, F). States are (layers, B, H) either way.
        dropout: probability that an output of any layer but the last is dropped in training.
        bidirectional: add a pass backwards in time. It looks ahead, so do not use it in forecasts.
        proj_size: must be 0; projections are not supported.

    Shape:
        input (B, T, F), (T, B, F), or (T, F) without batch; hx a pair of (layers * directions, B, H), or without B,
        zero by default -> output (B, T, directions * H), and the state after the last row. A row with a NaN input is
        missing and leaves the states of all layers unchanged; pad sequences of different length with NaN instead of
        packing them.

    Causal unless bidirectional, no warm-up.

    Raises:
        ValueError, TypeError: an argument is out of range, the input is packed, or shapes do not match.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.LSTM(3, 5, num_layers=2, batch_first=True)
        >>> output, (h, c) = layer(torch.randn(4, 60, 3))
        >>> output.shape, h.shape
        (torch.Size([4, 60, 5]), torch.Size([2, 4, 5]))
        >>> layer.load_state_dict(torch.nn.LSTM(3, 5, num_layers=2).state_dict())
        <All keys matched successfully>
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("LSTM", 1, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if proj_size:
            raise_invalid("LSTM", "proj_size must be 0 (add a Linear after the layer instead)", proj_size=proj_size)
        if not 0 <= dropout <= 1:
            raise_invalid("LSTM", "dropout must be in [0, 1]", dropout=dropout)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        for k, suffix in enumerate(self._suffixes()):
            features = input_size if k < self.directions else hidden_size * self.directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (4 * hidden_size, features)}
            shapes |= {"weight_hh": (4 * hidden_size, hidden_size)}
            shapes |= {"bias_ih": (4 * hidden_size,), "bias_hh": (4 * hidden_size,)} if bias else {}
            for name, shape in shapes.items():
                setattr(self, name + suffix, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def _suffixes(self) -> list[str]:
        directions = ("", "_reverse")[: self.directions]
        return [f"_l{layer}{direction}" for layer in range(self.num_layers) for direction in directions]

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        init_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing; `torch.nn.LSTM` packs its weights for cuDNN in this method."""

    def forward(self, input: Tensor, hx: RecurrenceState | None = None) -> tuple[Tensor, RecurrenceState]:
        """Output of the last layer at every row, and (h, c) of every layer after the last row."""
        x = to_batch_first("LSTM", input, self.input_size, self.batch_first)
        states = initial_state("LSTM", x, hx, self.num_layers * self.directions, self.hidden_size)
        missing = x.isnan().any(-1, keepdim=True) if self.num_layers > 1 else None
        final: list[RecurrenceState] = []
        for layer in range(self.num_layers):
            if missing is not None and layer:  # a missing row is missing for every layer
                x = F.dropout(x, self.dropout, self.training).masked_fill(missing, torch.nan)
            passes = [self._pass(x, states, layer * self.directions + k) for k in range(self.directions)]
            x = torch.cat([output for output, _ in passes], -1) if self.bidirectional else passes[0][0]
            final += [state for _, state in passes]
        return from_batch_first(x, final, input.dim() == 2, self.batch_first)

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

    def _pass(self, x: Tensor, states: RecurrenceState, k: int) -> tuple[Tensor, RecurrenceState]:
        """One layer in one direction."""
        suffix, backwards = self._suffixes()[k], self.bidirectional and k % 2
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.bias else 2]
        weights = [getattr(self, name + suffix) for name in names]
        output, state = ops.lstm(x.flip(-2) if backwards else x, (states[0][k], states[1][k]), *weights)
        return output.flip(-2) if backwards else output, state

    def extra_repr(self) -> str:
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        options = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *options])


class LSTMCell(nn.Module):
    """One step of an LSTM, `ops.lstm_cell`; arguments, parameters and results as in `torch.nn.LSTMCell`.

    The state dicts are interchangeable. A sample with a NaN in its input is missing and keeps its state.

    Args:
        input_size: F, the number of features of a row.
        hidden_size: H, the number of features of the state.
        bias: whether to use b_ih and b_hh.

    Shape:
        input (B, F) or (F,), hx a pair of (B, H) or (H,), zero by default -> the pair (h', c').

    Raises:
        ValueError, TypeError: an argument is out of range, or shapes do not match.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> cell = nn.LSTMCell(3, 5)
        >>> h, c = cell(torch.randn(4, 3))
        >>> h.shape
        torch.Size([4, 5])
        >>> cell.load_state_dict(torch.nn.LSTMCell(3, 5).state_dict())
        <All keys matched successfully>
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
        check_integer("LSTMCell", 1, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = 4 * hidden_size
        shapes = {"weight_ih": (gates, input_size), "weight_hh": (gates, hidden_size)}
        for name, shape in (shapes | {"bias_ih": (gates,), "bias_hh": (gates,)}).items():
            used = bias or name in shapes
            value = nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) if used else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(hidden_size)."""
        init_uniform(self, self.hidden_size)

    def forward(self, input: Tensor, hx: RecurrenceState | None = None) -> RecurrenceState:
        """(h', c') after the step."""
        check_row("LSTMCell", input, self.input_size)
        hx = zero_state(input, *input.shape[:-1], self.hidden_size) if hx is None else hx
        weights = [getattr(self, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        return ops.lstm_cell(input, hx, *weights)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"
