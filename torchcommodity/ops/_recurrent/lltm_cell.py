"""One step of LLTM: matrix products by BLAS and the cell, as one operator."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._recurrent import cell, sequence
from torchcommodity.ops._recurrent.cell import CellOutputs
from torchcommodity.ops._recurrent.lltm import step, step_backward
from torchcommodity.ops._recurrent.sequence import CellState


def lltm_cell(
    input: Tensor,  # (..., F)
    hx: CellState,  # (..., H) each
    weight: Tensor,  # (3 H, H + F)
    bias: Tensor | None = None,  # (3 H,)
) -> CellState:  # (..., H) each
    """One step of the long-long-term memory (LLTM); `lltm` runs a sequence.

    With z = W [h, x] + b, split into i, o, g:

        c' = c + sigmoid(i) elu(g)
        h' = sigmoid(o) tanh(c')

    Args:
        input: x in any unit; leading axes are batches.
        hx: h and c before the step.
        weight, bias: The first H columns of `weight` multiply h, the others the input, as in the tutorial.

    Returns:
        h' and c'. A sample with a NaN in its input is missing: its state is unchanged.

    Raises:
        ValueError, TypeError: If shapes do not match, or the tensors do not have one floating-point dtype and device.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode. `vmap` runs the samples one by one, since each may have its own weights.

    References:
        Goldsborough (2018). Custom C++ and CUDA extensions. PyTorch tutorials.
        https://docs.pytorch.org/tutorials/advanced/cpp_extension.html.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> h, c = ops.lltm_cell(torch.ones(1, 3), (torch.zeros(1, 2), torch.zeros(1, 2)), torch.ones(6, 5))
        >>> c  # sigmoid(3) elu(3)
        tensor([[2.8577, 2.8577]])
    """
    return _run(input, *sequence.check_state("lltm_cell", input, hx), weight, bias)


def _run(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellState:
    if input.dim() < 1 or h.dim() < 1:
        raise_invalid("lltm_cell", "input must be (..., F) and h (..., H)", input=input, h=h)
    shape, hidden = input.shape, h.shape[-1]
    state = (*shape[:-1], hidden)
    mixed = sequence.check_tensors(
        "lltm_cell",
        ("input", input, shape),
        ("h", h, state),
        ("c", c, state),
        ("weight", weight, (3 * hidden, hidden + shape[-1])),
        ("bias", bias, (3 * hidden,)),
    )
    return sequence.run_layer(operator, mixed, input, h, c, weight, bias)


def _reference(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellOutputs:
    filled, missing = sequence.without_missing(input)
    return cell.run(step, F.linear(torch.cat([h, filled], -1), weight, bias), missing, h, c)


def _backward(
    *grads: Tensor | None,
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    output2: Tensor,
    output3: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    gradients = backward_operator(*grads[:3], input, h, c, weight, output2, output3, [*needs_input_grad])
    return cell.where_needed(gradients, needs_input_grad)


def _backward_reference(
    grad_h: Tensor | None,
    grad_c: Tensor | None,
    grad_gates: Tensor | None,
    input: Tensor,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    gates: Tensor,
    missing: Tensor,
    needs: list[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    # dz from the cell; dW = dz' [h, x], db = sum dz, dh and dx = dz W
    d_gates, d_h, d_c = cell.run_backward(step, step_backward, grad_h, grad_c, grad_gates, gates, missing, c)
    rows, none, hidden = d_gates.reshape(-1, d_gates.shape[-1]), d_gates.new_empty, h.shape[-1]
    joined = torch.cat([h, input.masked_fill(missing.unsqueeze(-1), 0)], -1)
    return (
        d_gates @ weight[:, hidden:] if needs[0] else none(0),
        d_h + d_gates @ weight[:, :hidden] if needs[1] else none(0),
        d_c,
        rows.mT @ joined.reshape(-1, joined.shape[-1]) if needs[3] else none(0),
        rows.sum(0) if needs[4] else none(0),
    )


def _backward_fake(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, needs: list[bool]) -> tuple[Tensor, ...]:
    return cell.needed((input, h, c, weight, weight[:, 0]), [*needs[:2], True, *needs[3:]])


def _oracle(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellState:
    """As in the tutorial; a missing sample keeps its state."""
    gates = F.linear(torch.cat([h, input], dim=1), weight, bias).chunk(3, dim=1)
    input_gate = torch.sigmoid(gates[0])
    output_gate = torch.sigmoid(gates[1])
    candidate_cell = F.elu(gates[2])
    new_cell = c + candidate_cell * input_gate
    is_missing = input.isnan().any(-1, keepdim=True)
    return torch.where(is_missing, h, torch.tanh(new_cell) * output_gate), torch.where(is_missing, c, new_cell)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3), (2, 4), (2, 4), (12, 7), (12,))
    x, h, c, weight, bias = (torch.randn(shape, dtype=torch.double, generator=generator) / 2 for shape in shapes)
    gap = x.index_fill(0, torch.tensor(1), torch.nan)
    return Cases(
        function=_run,
        samples=(Sample(x, h, c, weight, bias), Sample(gap, h, c, weight)),
        bad=(
            Bad(Sample(x[0, 0], h, c, weight), r"lltm_cell: input must be \(\.\.\., F\).*; got input \(\)"),
            Bad(Sample(x, h[:1], c, weight), r"lltm_cell: h must be \(2, 4\); got input \(2, 3\), h \(1, 4\)"),
            Bad(Sample(x[..., :2], h, c, weight), r"lltm_cell: weight must be \(12, 6\)"),
            Bad(Sample(x, h, c, weight, bias[:4]), r"lltm_cell: bias must be \(12,\)"),
            Bad(Sample(x.long(), h, c, weight), "lltm_cell: input must be floating-point", TypeError),
            Bad(Sample(x.float(), h, c, weight), "lltm_cell: all tensors must have one dtype", TypeError),
        ),
        oracle=_oracle,
    )


def _backward_cases() -> Cases:
    sample = _cases().samples[0]
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(2, size, dtype=torch.double, generator=generator) for size in (4, 4, 12)]

    def function(grad_h: Tensor, grad_c: Tensor, grad_gates: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        gates, missing = operator(*tensors)[2:]
        gradients: tuple[Tensor, ...] = backward_operator(
            grad_h, grad_c, grad_gates, *tensors[:4], gates, missing, [True] * 5
        )
        return gradients

    return Cases(function=function, samples=(Sample(*grads, *sample.tensors),))


backward_operator = Op(
    "commodity::lltm_cell_backward",
    reference=_backward_reference,
    fake=_backward_fake,
    backward="reference",
    mask_nan_grad=False,
    cases=_backward_cases,
    time=None,
    vmap="loop",
)
operator = Op(
    "commodity::lltm_cell",
    reference=_reference,
    fake=cell.fake,
    backward=_backward,
    mask_nan_grad=False,
    materialize_grads=False,
    cases=_cases,
    time=None,
    vmap="loop",
)
