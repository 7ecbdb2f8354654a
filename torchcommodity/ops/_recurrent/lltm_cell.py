"""One step of LLTM: concatenation, PyTorch's matrix product and the cell, as one operator."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._recurrent import cell, sequence
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
    hidden, state = h.shape[-1], (*input.shape[:-1], h.shape[-1])
    shapes = {"h": state, "c": state, "weight": (3 * hidden, hidden + input.shape[-1]), "bias": (3 * hidden,)}
    tensors = {"input": input, "h": h, "c": c, "weight": weight, "bias": bias}
    sequence.check_tensors("lltm_cell", tensors, shapes)

    def compute(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None) -> CellState:
        if input.dim() == 2:
            h_next, c_next = operator(input, h, c, weight, bias)[:2]
            return h_next, c_next
        rows = [x.reshape(-1, x.shape[-1]) for x in (input, h, c)]
        h_next, c_next = operator(*rows, weight, bias)[:2]
        return h_next.reshape(h.shape), c_next.reshape(c.shape)

    return sequence.run_in_float32(compute, input, h, c, weight, bias)


CellOutputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # h', c', and for the backward pass [h, x], missing, gates


def _reference(input: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None) -> CellOutputs:
    missing = input.detach().isnan().any(-1)
    joined = torch.cat([h, input.masked_fill(missing.unsqueeze(-1), 0)], -1)
    gates = F.linear(joined, weight, bias)
    return *cell.run(step, gates, missing, h, c), joined, missing, gates


def _fake(input: Tensor, h: Tensor, c: Tensor, weight: Tensor) -> CellOutputs:
    samples, columns = h.shape[0], h.shape[1] + input.shape[1]
    states = h.new_empty(h.shape), c.new_empty(c.shape)
    missing = h.new_empty(samples, dtype=torch.bool)
    return *states, h.new_empty(samples, columns), missing, h.new_empty(samples, weight.shape[0])


def _backward(
    *grads: Tensor | None,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    output2: Tensor,
    output3: Tensor,
    output4: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    # dz from the cell; dW = dz' [h, x], db = sum dz, dh and dx = dz W
    joined, missing, gates, hidden = output2, output3, output4, h.shape[1]
    grad_h, grad_c = (torch.zeros_like(c) if grad is None else grad for grad in grads[:2])
    d_gates, d_h, d_c = backward_operator(grad_h, grad_c, gates, missing, c)
    if grads[4] is not None:  # of a second derivative
        d_gates = d_gates + grads[4]
    needs_input, needs_h, _, needs_weight, needs_bias = needs_input_grad
    d_input = d_gates @ weight[:, hidden:] if needs_input else None
    d_h = d_h + d_gates @ weight[:, :hidden] if needs_h else None
    if grads[2] is not None:
        d_input = None if d_input is None else d_input + grads[2][:, hidden:]
        d_h = None if d_h is None else d_h + grads[2][:, :hidden]
    if d_input is not None:
        d_input = d_input.masked_fill(missing.unsqueeze(-1), 0)
    d_weight = d_gates.mT @ joined if needs_weight else None
    return d_input, d_h, d_c, d_weight, d_gates.sum(0) if needs_bias else None


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


backward_operator = cell.make_backward_operator("lltm_cell", 3, step, step_backward)
operator = Op(
    "commodity::lltm_cell",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    materialize_grads=False,
    cases=_cases,
    time=None,
    vmap="loop",
)
