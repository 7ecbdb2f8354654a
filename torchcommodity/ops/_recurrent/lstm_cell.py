"""One step of torch.nn.LSTMCell: matrix products by BLAS and the cell, as one operator."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._recurrent import cell, sequence
from torchcommodity.ops._recurrent.cell import CellOutputs
from torchcommodity.ops._recurrent.lstm import step, step_backward
from torchcommodity.ops._recurrent.sequence import CellState


def lstm_cell(
    input: Tensor,  # (..., F)
    hx: CellState,  # (..., H) each
    weight_ih: Tensor,  # (4 H, F)
    weight_hh: Tensor,  # (4 H, H)
    bias_ih: Tensor | None = None,  # (4 H,)
    bias_hh: Tensor | None = None,  # (4 H,)
) -> CellState:  # (..., H) each
    """One step of an LSTM, equal to `torch.nn.LSTMCell`; `lstm` runs a sequence.

    With z = W_ih x + b_ih + W_hh h + b_hh, split into i, f, g, o:

        c' = sigmoid(f) c + sigmoid(i) tanh(g)
        h' = sigmoid(o) tanh(c')

    Args:
        input: x in any unit; leading axes are batches.
        hx: h and c before the step.
        weight_ih, weight_hh, bias_ih, bias_hh: As in torch.nn.LSTMCell.

    Returns:
        h' and c'. A sample with a NaN in its input is missing: its state is unchanged.

    Raises:
        ValueError, TypeError: If shapes do not match, or the tensors do not have one floating-point dtype and device.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode. `vmap` runs the samples one by one, since each may have its own weights.

    References:
        Hochreiter, Schmidhuber (1997). Long short-term memory. Neural Computation 9(8). doi:10.1162/neco.1997.9.8.1735.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> cell, x, state = torch.nn.LSTMCell(3, 5), torch.rand(2, 3), (torch.rand(2, 5), torch.rand(2, 5))
        >>> h, c = ops.lstm_cell(x, state, *cell.parameters())
        >>> torch.allclose(h, cell(x, state)[0], atol=1e-6)
        True
    """
    return _run(input, *sequence.check_state("lstm_cell", input, hx), weight_ih, weight_hh, bias_ih, bias_hh)


def _run(
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> CellState:
    if input.dim() < 1 or h.dim() < 1:
        raise_invalid("lstm_cell", "input must be (..., F) and h (..., H)", input=input, h=h)
    shape, hidden = input.shape, h.shape[-1]
    state, gates = (*shape[:-1], hidden), 4 * hidden
    mixed = sequence.check_tensors(
        "lstm_cell",
        ("input", input, shape),
        ("h", h, state),
        ("c", c, state),
        ("weight_ih", weight_ih, (gates, shape[-1])),
        ("weight_hh", weight_hh, (gates, hidden)),
        ("bias_ih", bias_ih, (gates,)),
        ("bias_hh", bias_hh, (gates,)),
    )
    return sequence.run_layer(operator, mixed, input, h, c, weight_ih, weight_hh, bias_ih, bias_hh)


def _reference(
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> CellOutputs:
    filled, missing = sequence.without_missing(input)
    return cell.run(step, F.linear(filled, weight_ih, bias_ih) + F.linear(h, weight_hh, bias_hh), missing, h, c)


def _fake(input: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor) -> CellOutputs:
    return cell.fake(input, h, c, weight_ih)


def _backward(
    *grads: Tensor | None,
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    output2: Tensor,
    output3: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    tensors = (input, h, c, weight_ih, weight_hh, output2, output3)
    *gradients, d_bias = backward_operator(*grads[:3], *tensors, [*needs_input_grad])
    return cell.where_needed((*gradients, d_bias, d_bias), needs_input_grad)


def _backward_reference(
    grad_h: Tensor | None,
    grad_c: Tensor | None,
    grad_gates: Tensor | None,
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    gates: Tensor,
    missing: Tensor,
    needs: list[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    # dz from the cell; dW_ih = dz' x, dW_hh = dz' h, db = sum dz, dx = dz W_ih, dh = dz W_hh
    d_gates, d_h, d_c = cell.run_backward(step, step_backward, grad_h, grad_c, grad_gates, gates, missing, c)
    rows, none = d_gates.reshape(-1, d_gates.shape[-1]), d_gates.new_empty
    filled = input.masked_fill(missing.unsqueeze(-1), 0)
    return (
        d_gates @ weight_ih if needs[0] else none(0),
        d_h + d_gates @ weight_hh if needs[1] else none(0),
        d_c,
        rows.mT @ filled.reshape(-1, input.shape[-1]) if needs[3] else none(0),
        rows.mT @ h.reshape(-1, h.shape[-1]) if needs[4] else none(0),
        rows.sum(0) if needs[5] or needs[6] else none(0),
    )


def _backward_fake(
    input: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, needs: list[bool]
) -> tuple[Tensor, ...]:
    likes = (input, h, c, weight_ih, weight_hh, weight_ih[:, 0])
    return cell.needed(likes, [*needs[:2], True, *needs[3:5], needs[5] or needs[6]])


def _oracle(
    input: Tensor, h: Tensor, c: Tensor, weight_ih: Tensor, weight_hh: Tensor, *biases: Tensor | None
) -> CellState:
    """torch.nn.LSTMCell; a missing sample keeps its state."""
    cell = torch.nn.LSTMCell(input.shape[-1], h.shape[-1], bias=bool(biases), dtype=input.dtype)
    parameters = [x for x in (weight_ih, weight_hh, *biases) if x is not None]
    with torch.no_grad():
        for parameter, value in zip(cell.parameters(), parameters, strict=True):
            parameter.copy_(value)
        h_next, c_next = cell(input, (h, c))
    is_missing = input.isnan().any(-1, keepdim=True)
    return torch.where(is_missing, h, h_next), torch.where(is_missing, c, c_next)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,))
    x, h, c, *weights = (torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes)
    gap = x.index_fill(0, torch.tensor(1), torch.nan)
    return Cases(
        function=_run,
        samples=(Sample(x, h, c, *weights), Sample(gap, h, c, *weights[:2])),
        bad=(
            Bad(Sample(x[0, 0], h, c, *weights), r"lstm_cell: input must be \(\.\.\., F\).*; got input \(\)"),
            Bad(Sample(x, h[:1], c, *weights), r"lstm_cell: h must be \(2, 4\); got input \(2, 3\), h \(1, 4\)"),
            Bad(Sample(x[..., :2], h, c, *weights), r"lstm_cell: weight_ih must be \(16, 2\)"),
            Bad(Sample(x, h, c, weights[0], weights[1][:10]), r"lstm_cell: weight_hh must be \(16, 4\)"),
            Bad(Sample(x, h, c, *weights[:3], weights[3][:4]), r"lstm_cell: bias_hh must be \(16,\)"),
            Bad(Sample(x.long(), h, c, *weights), "lstm_cell: input must be floating-point", TypeError),
            Bad(Sample(x.float(), h, c, *weights), "lstm_cell: all tensors must have one dtype", TypeError),
        ),
        oracle=_oracle,
    )


def _backward_cases() -> Cases:
    sample = _cases().samples[0]
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(2, size, dtype=torch.double, generator=generator) for size in (4, 4, 16)]

    def function(grad_h: Tensor, grad_c: Tensor, grad_gates: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        gates, missing = operator(*tensors)[2:]
        gradients: tuple[Tensor, ...] = backward_operator(
            grad_h, grad_c, grad_gates, *tensors[:5], gates, missing, [True] * 7
        )
        return gradients

    return Cases(function=function, samples=(Sample(*grads, *sample.tensors),))


backward_operator = Op(
    "commodity::lstm_cell_backward",
    reference=_backward_reference,
    fake=_backward_fake,
    backward="reference",
    mask_nan_grad=False,
    cases=_backward_cases,
    time=None,
    vmap="loop",
)
operator = Op(
    "commodity::lstm_cell",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    materialize_grads=False,
    cases=_cases,
    time=None,
    vmap="loop",
)
