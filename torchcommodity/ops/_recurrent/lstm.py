"""A layer of torch.nn.LSTM over a sequence as one operator, which compilers and exporters handle as a whole."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._recurrent import sequence
from torchcommodity.ops._recurrent.sequence import CellState
from torchcommodity.ops._scan.scan import Tensors


def lstm(
    input: Tensor,  # (..., T, F)
    hx: CellState,  # (..., H) each
    weight_ih: Tensor,  # (4 H, F)
    weight_hh: Tensor,  # (4 H, H)
    bias_ih: Tensor | None = None,  # (4 H,)
    bias_hh: Tensor | None = None,  # (4 H,)
) -> tuple[Tensor, CellState]:  # (..., T, H), and (..., H) each
    """One LSTM layer over a sequence, equal to `torch.nn.LSTM`.

    With z_t = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh, split into i, f, g, o:

        c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g)
        h_t = sigmoid(o) tanh(c_t)

    Args:
        input: x in any unit; leading axes are batches.
        hx: h and c before the first row.
        weight_ih, weight_hh, bias_ih, bias_hh: As in torch.nn.LSTM.

    Returns:
        h at every row, and the state (h, c) after the last row. Causal, no warm-up. A row with a NaN in its input is
        missing: it leaves the state unchanged and has zero gradient. Sequences of different lengths can be padded with
        NaN.

    Raises:
        ValueError, TypeError: If shapes do not match, or the tensors do not have one floating-point dtype and device.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Hochreiter, Schmidhuber (1997). Long short-term memory. Neural Computation 9(8). doi:10.1162/neco.1997.9.8.1735.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> layer = torch.nn.LSTM(3, 5, batch_first=True)
        >>> x, zeros = torch.rand(2, 7, 3), torch.zeros(2, 5)
        >>> output, (h, c) = ops.lstm(x, (zeros, zeros), *layer.parameters())
        >>> output.shape, torch.allclose(output, layer(x)[0], atol=1e-6)
        (torch.Size([2, 7, 5]), True)
    """
    h, c = _run(input, *sequence.check_state("lstm", input, hx), weight_ih, weight_hh, bias_ih, bias_hh)
    return sequence.with_last_state(h, c, hx)


def _run(
    input: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> CellState:
    if input.dim() < 2 or weight_hh.dim() != 2:
        raise_invalid("lstm", "input must be (..., T, F) and weight_hh (4 H, H)", input=input, weight_hh=weight_hh)
    shape, hidden = input.shape, weight_hh.shape[-1]
    state, gates = (*shape[:-2], hidden), 4 * hidden
    mixed = sequence.check_tensors(
        "lstm",
        ("input", input, shape),
        ("h0", h0, state),
        ("c0", c0, state),
        ("weight_ih", weight_ih, (gates, shape[-1])),
        ("weight_hh", weight_hh, (gates, hidden)),
        ("bias_ih", bias_ih, (gates,)),
        ("bias_hh", bias_hh, (gates,)),
    )
    bias = bias_ih if bias_hh is None else bias_hh if bias_ih is None else bias_ih + bias_hh
    return sequence.run_sequence(operator, mixed, input, h0, c0, weight_ih, weight_hh, bias)


def _activate(z: Tensor) -> Tensors:
    i, f, g, o = z.chunk(4, -1)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


def _advance(activations: Tensors, c: Tensor) -> CellState:
    i, f, g, o = activations
    c = f * c + i * g
    return o * c.tanh(), c


def _gradients(activations: Tensors, c_previous: Tensor, c: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = activations
    y = c.tanh()
    d_c = d_c + d_h * o * (1 - y * y)
    d_z = (d_c * g * i * (1 - i), d_c * c_previous * f * (1 - f), d_c * i * (1 - g * g), d_h * y * o * (1 - o))
    return sequence.mask_nan_states(o * y, *d_z, d_c * f)


def _oracle(
    input: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, *biases: Tensor | None
) -> CellState:
    cell = torch.nn.LSTMCell(input.shape[-1], h.shape[-1], bias=bool(biases), dtype=input.dtype)
    parameters = [x for x in (weight_ih, weight_hh, *biases) if x is not None]
    rows = []
    with torch.no_grad():
        for parameter, value in zip(cell.parameters(), parameters, strict=True):
            parameter.copy_(value)
        for row in input.unbind(-2):
            h, c = cell(row, (h, c))
            rows.append((h, c))
    return torch.stack([h for h, _ in rows], -2), torch.stack([c for _, c in rows], -2)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 5, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,))
    x, h0, c0, *weights = (torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes)
    return Cases(
        function=_run,
        samples=(Sample(x, h0, c0, *weights), Sample(x, h0, c0, *weights[:2])),
        bad=(
            Bad(Sample(x[0, 0], h0, c0, *weights), r"lstm: input must be \(\.\.\., T, F\).*; got input \(3,\)"),
            Bad(Sample(x, h0[:1], c0, *weights), r"lstm: h0 must be \(2, 4\); got input \(2, 5, 3\), h0 \(1, 4\)"),
            Bad(Sample(x[..., :2], h0, c0, *weights), r"lstm: weight_ih must be \(16, 2\)"),
            Bad(Sample(x, h0, c0, weights[0], weights[1][:10]), r"lstm: weight_hh must be \(16, 4\)"),
            Bad(Sample(x, h0, c0, *weights[:3], weights[3][:4]), r"lstm: bias_hh must be \(16,\)"),
            Bad(Sample(x.long(), h0, c0, *weights), "lstm: input must be floating-point", TypeError),
            Bad(Sample(x.float(), h0, c0, *weights), "lstm: all tensors must have one dtype", TypeError),
        ),
        oracle=_oracle,
    )


cell = sequence.Cell(4, _activate, _advance, _gradients)
step, step_backward = cell.step, cell.step_backward
operator = sequence.make_operator("lstm", cell, _cases)
