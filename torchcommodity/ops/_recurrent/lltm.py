"""LLTM, the recurrent unit of PyTorch's C++ extension tutorial, over a sequence."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._recurrent import sequence
from torchcommodity.ops._recurrent.sequence import CellState
from torchcommodity.ops._scan.scan import Tensors


def lltm(
    input: Tensor,  # (..., T, F)
    hx: CellState,  # (..., H) each
    weight: Tensor,  # (3 H, H + F)
    bias: Tensor | None = None,  # (3 H,)
) -> tuple[Tensor, CellState]:  # (..., T, H), and (..., H) each
    """Long-long-term memory (LLTM) over a sequence: an LSTM-like unit without a forget gate.

    With z_t = W [h_{t-1}, x_t] + b, split into i, o, g:

        c_t = c_{t-1} + sigmoid(i) elu(g)
        h_t = sigmoid(o) tanh(c_t)

    Args:
        input: x in any unit; leading axes are batches.
        hx: h and c before the first row.
        weight, bias: The first H columns of `weight` multiply h, the others the input, as in the tutorial.

    Returns:
        h at every row, and the state (h, c) after the last row. Causal, no warm-up. A row with a NaN in its input is
        missing: it leaves the state unchanged and has zero gradient.

    Raises:
        ValueError, TypeError: If shapes do not match, or the tensors do not have one floating-point dtype and device.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Goldsborough (2018). Custom C++ and CUDA extensions. PyTorch tutorials.
        https://docs.pytorch.org/tutorials/advanced/cpp_extension.html.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> zeros = torch.zeros(2, 5)
        >>> output, (h, c) = ops.lltm(torch.ones(2, 7, 3), (zeros, zeros), torch.ones(15, 8), torch.zeros(15))
        >>> output.shape, h.equal(output[:, -1])
        (torch.Size([2, 7, 5]), True)
    """
    h, c = _run(input, *sequence.check_state("lltm", input, hx), weight, bias)
    return sequence.with_last_state(h, c, hx)


def _run(input: Tensor, h0: Tensor, c0: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellState:
    if input.dim() < 2 or h0.dim() < 1:
        raise_invalid("lltm", "input must be (..., T, F) and h0 (..., H)", input=input, h0=h0)
    shape, hidden = input.shape, h0.shape[-1]
    state = (*shape[:-2], hidden)
    mixed = sequence.check_tensors(
        "lltm",
        ("input", input, shape),
        ("h0", h0, state),
        ("c0", c0, state),
        ("weight", weight, (3 * hidden, hidden + shape[-1])),
        ("bias", bias, (3 * hidden,)),
    )
    return sequence.run_sequence(operator, mixed, input, h0, c0, weight[:, hidden:], weight[:, :hidden], bias)


def _activate(z: Tensor) -> Tensors:
    i, o, g = z.chunk(3, -1)
    return i.sigmoid(), o.sigmoid(), _elu(g)


def _advance(activations: Tensors, c: Tensor) -> CellState:
    i, o, g = activations
    c = c + i * g
    return o * c.tanh(), c


def _gradients(activations: Tensors, c_previous: Tensor, c: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = activations
    y = c.tanh()
    d_c = d_c + d_h * o * (1 - y * y)
    slope = torch.where(g > 0, 1.0, g + 1)  # derivative of elu
    return sequence.mask_nan_states(o * y, d_c * g * i * (1 - i), d_h * y * o * (1 - o), d_c * i * slope, d_c)


def _elu(x: Tensor) -> Tensor:
    """F.elu, which onnxruntime does not have in double precision."""
    return torch.where(x > 0, x, x.clamp(max=0).exp() - 1)


def _oracle(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellState:
    rows = []
    for row in input.unbind(-2):  # as in the tutorial
        gate_weights = F.linear(torch.cat([h, row], dim=1), weight, bias)
        gates = gate_weights.chunk(3, dim=1)
        input_gate, output_gate = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
        candidate_cell = F.elu(gates[2])
        c = c + candidate_cell * input_gate
        h = torch.tanh(c) * output_gate
        rows.append((h, c))
    return torch.stack([h for h, _ in rows], -2), torch.stack([c for _, c in rows], -2)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 5, 3), (2, 4), (2, 4), (12, 7), (12,))
    x, h0, c0, weight, bias = (torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes)
    return Cases(
        function=_run,
        samples=(Sample(x, h0, c0, weight, bias), Sample(x, h0, c0, weight)),
        bad=(
            Bad(Sample(x[0, 0], h0, c0, weight), r"lltm: input must be \(\.\.\., T, F\).*; got input \(3,\)"),
            Bad(Sample(x, h0[:1], c0, weight), r"lltm: h0 must be \(2, 4\); got input \(2, 5, 3\), h0 \(1, 4\)"),
            Bad(Sample(x[..., :2], h0, c0, weight), r"lltm: weight must be \(12, 6\)"),
            Bad(Sample(x, h0, c0, weight, bias[:4]), r"lltm: bias must be \(12,\)"),
            Bad(Sample(x.long(), h0, c0, weight), "lltm: input must be floating-point", TypeError),
            Bad(Sample(x.float(), h0, c0, weight), "lltm: all tensors must have one dtype", TypeError),
        ),
        oracle=_oracle,
    )


cell = sequence.Cell(3, _activate, _advance, _gradients)
step, step_backward = cell.step, cell.step_backward
operator = sequence.make_operator("lltm", cell, _cases)
