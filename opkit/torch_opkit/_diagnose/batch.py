"""What another batch shows: samples that depend on each other, a loss that grows with their number."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from torch_opkit._diagnose.call import compute_loss, fresh
from torch_opkit._diagnose.findings import ModelFinding, Severity
from torch_opkit._diagnose.locations import Place, current_place
from torch_opkit._diagnose.source import names_in_use
from torch_opkit._diagnose.step import Problem, scalar_loss
from torch_opkit._diagnose.trace import function_name
from torch_opkit._diagnose.values import named_tensors, tensors_in

MIXED = "the output of a sample depends on the other samples of the batch"
BATCH_NORMS = {"batch_norm", "native_batch_norm"}
DEVIATIONS = {"std", "var", "std_mean", "var_mean"}
SEQUENCES = {
    "lstm", "gru", "rnn_tanh", "rnn_relu", "multi_head_attention_forward", "scaled_dot_product_attention",
    "conv1d", "conv2d", "conv3d",
}  # fmt: skip
# a product with weights for each pair of samples, or messages along edges, are meant: graphs, similarities
PRODUCTS = {
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "einsum", "tensordot", "cdist",
    "spmm", "sparse_mm", "outer", "index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce",
    "scatter_reduce_", "index_put", "index_put_", "__setitem__",
}  # fmt: skip
VIEWS = {"view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"}
# which take a part of the elements, so that a sample has a larger share of them
SELECTIONS = {
    "__getitem__", "index_select", "gather", "masked_select", "chunk", "split", "unbind", "narrow", "select", "take",
    "take_along_dim", "unfold", "tensor_split", "diagonal", "topk", "expand", "repeat", "broadcast_to", "clone",
}  # fmt: skip
FIX_SEQUENCE = "pass batch_first=True for (samples, time, features), or transpose to (time, samples, features)"
FIX_VIEW = "move axes by transpose, permute or movedim: view and reshape keep the order of the elements in memory"
FIX_REDUCTION = "compute over another axis than the first, which is the batch: dim=-1"


def grows_with_batch(problem: Problem) -> list[ModelFinding]:
    """Repeat the samples: a mean stays the same, a sum doubles."""

    def repeat(x: object) -> Any:
        return torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() else x

    problem.model.eval()
    try:
        once, twice = (
            scalar_loss(compute_loss(problem.model, batch, problem.loss_fn))
            for batch in (fresh(problem.batch), tree_map(repeat, fresh(problem.batch)))
        )
        ratio = float(twice / once) if once is not None and twice is not None else 1.0
    except Exception:  # a model with a fixed batch size: nothing to compare
        return []
    if not abs(ratio - 2) < 0.02:
        return []
    message = "the loss doubles with the batch size, so the step size depends on it"
    fix = "take the mean over the batch, or divide by its size"
    return [ModelFinding("batch_size", message, fix, severity="warning")]


def batch_requires_grad(problem: Problem) -> list[ModelFinding]:
    """A note on Tensors of the batch that require a gradient, unless the code asks for one itself."""
    names = tuple(name for name, x in named_tensors(problem.batch, "batch") if x.requires_grad)
    if not names or names_in_use(problem.model.modules(), [problem.loss_fn]) & {"grad", "jacobian", "vjp", "jvp"}:
        return []
    message = "Tensors of the batch require a gradient, which nothing uses: it costs time and memory"
    return [ModelFinding("batch_requires_grad", message, "make them without requires_grad", names, severity="note")]


def mixed_samples(problem: Problem) -> list[ModelFinding]:
    """Change one sample, and look at the outputs of the others, in evaluation mode; a note on batch normalization."""
    modules = problem.model.named_modules()
    names = tuple(n for n, m in modules if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training)
    count = _batch_size(problem.batch)
    if count is None or isinstance(problem.model, torch.jit.ScriptModule):
        return []
    problem.model.eval()
    if _mixes(problem, count, 0):
        return _explain(problem, count)
    if not names:
        return []
    fix = "nothing: batch normalization has this effect; in evaluation mode samples are independent"
    return [ModelFinding("batch_norm", f"in training mode {MIXED}", fix, names, severity="note")]


def _batch_size(batch: object) -> int | None:
    """The common length of the first axis of all Tensors; None if there is none."""
    tensors = [x for x in tensors_in(batch) if x.dim()]
    lengths = {len(x) for x in tensors}
    is_plain = all(x.layout == torch.strided and not x.is_nested for x in tensors)
    return lengths.pop() if is_plain and len(lengths) == 1 and min(lengths) > 1 else None


def _with_another_sample(batch: Any, index: int, count: int) -> Any:
    """The batch with the values of another of its samples in place of one."""
    tensors = [x for x in tensors_in(batch) if x.dim()]
    others = [i for i in range(count) if any(not torch.equal(x[i], x[index]) for x in tensors)]

    def replace(x: object) -> Any:
        if isinstance(x, Tensor) and x.dim() and others:
            order = torch.arange(count, device=x.device)
            order[index] = others[len(others) // 2]
            return x.detach()[order].requires_grad_(x.requires_grad)
        return x

    return tree_map(replace, batch)


def _mixes(problem: Problem, count: int, index: int) -> bool:
    """Whether the outputs of other samples depend on one: by their gradients, else as they change with it."""
    others = [i for i in range(count) if i != index]
    try:
        by_gradient = _has_gradient_of_others(problem, index, others)
        if by_gradient is not None:
            return by_gradient
        first, again = (_outputs(problem, fresh(problem.batch)) for _ in range(2))
        changed = _outputs(problem, _with_another_sample(fresh(problem.batch), index, count))
    except Exception:  # a model that refuses the batch: nothing to compare
        return False
    if len(first) != len(changed) or len(first) != len(again):
        return False
    rows = [
        (x[others], y[others], z[others])
        for x, y, z in zip(first, again, changed)
        if x.dim() and len(x) == count and x.shape == y.shape == z.shape
    ]
    return any(not _differ(x, y).any() and bool(_differ(x, z).any()) for x, y, z in rows)


def _has_gradient_of_others(problem: Problem, index: int, others: Sequence[int]) -> bool | None:
    """Whether a gradient of other outputs reaches the inputs of one sample; None if no gradient reaches any input."""
    batch = tree_map(lambda x: x.detach().requires_grad_() if _is_differentiable(x) else x, fresh(problem.batch))
    inputs = [x for x in tensors_in(batch) if _is_differentiable(x) and x.dim()]
    try:
        outputs = [y for y in _outputs(problem, batch) if y.requires_grad and y.dim() and len(y) == len(others) + 1]
        sums = [y[others].nan_to_num(0.0).square().sum() for y in outputs]
        gradients = torch.autograd.grad(sums, inputs, allow_unused=True) if inputs and sums else ()
    except RuntimeError:  # it writes to its inputs, or some function has no gradient
        return None
    reached = [g.detach().abs().nan_to_num(0.0) for g in gradients if g is not None]
    if not any(bool(g.any()) for g in reached):
        return None
    return any(bool(g[index].max() > 1e-12 * g.max()) for g in reached)


def _is_differentiable(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _differ(x: Tensor, y: Tensor) -> Tensor:
    """Elements that differ by more than rounding."""
    if not x.is_floating_point():
        return x != y
    scale = x.nan_to_num(0.0, 0.0, 0.0).abs().max() if x.numel() else x.new_zeros(())
    return ~((x == y) | ((x - y).abs() <= 1e-4 * (x.abs() + scale)) | (x.isnan() & y.isnan()))


def _outputs(problem: Problem, batch: Any) -> list[Tensor]:
    """What the model returns on a batch, call by call."""
    outputs = list[Tensor]()

    def keep(module: nn.Module, args: object, output: object) -> None:
        outputs.extend(tensors_in(output))

    handle = problem.model.register_forward_hook(keep)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            compute_loss(problem.model, batch, problem.loss_fn)
    finally:
        handle.remove()
    return outputs


class Recorder(TorchFunctionMode):
    """The results of every torch function, with its line and first argument."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Place, list[Tensor], list[Tensor]]] = []

    def __torch_function__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction(), torch.no_grad():
            name = function_name(func)
            inputs, outputs = ([x.detach().clone() for x in tensors_in(v)] for v in ((args, kwargs), result))
            self.calls.append((name, current_place(name), inputs, outputs))
        return result


def _explain(problem: Problem, count: int) -> list[ModelFinding]:
    """Find the first function that carries a change of one sample to others, and say what to do about it."""
    runs = []
    for batch in (fresh(problem.batch), _with_another_sample(fresh(problem.batch), 0, count)):
        with Recorder() as recorder:
            _outputs(problem, batch)
        runs.append(recorder.calls)
    moved: Place | None = None  # the view that has taken the samples apart
    deviations = any(name in DEVIATIONS and _drops_axis(x, y, count) for name, _, x, y in runs[0])
    for (name, place, inputs, outputs), (other, _, changed_inputs, changed) in zip(*runs):
        if name != other or len(outputs) != len(changed):
            return []
        before, after = list(_changes(inputs, changed_inputs)), list(_changes(outputs, changed))
        if name in VIEWS and any(map(_is_slice(count), before)) and not any(map(_is_slice(count), after)):
            moved = place
        if name in SELECTIONS | VIEWS or not after or not before:
            continue
        if all(_share(mask) <= 1 / count for mask in before) and any(_share(mask) > 1 / count for mask in after):
            whole = any(map(_is_slice(count), before))
            taken_apart = moved if not whole and (name in SEQUENCES | PRODUCTS or _has_axis(before, count)) else None
            by_hand = name in DEVIATIONS | {"mean"} and deviations  # mean and deviation of the batch
            return _finding(problem, "batch_norm" if by_hand else name, place, taken_apart, inputs, count)
    return []


def _finding(
    problem: Problem, name: str, place: Place, view: Place | None, inputs: Sequence[Tensor], count: int
) -> list[ModelFinding]:
    if name in BATCH_NORMS:
        message = f"{MIXED}, by batch normalization in evaluation mode too"
        fix = "keep running statistics for evaluation mode, as nn.BatchNorm1d does by default"
        return [ModelFinding("batch_norm", message, fix, (), place.location, severity="note")]
    if view is not None:
        message = f"{MIXED}: a {view.function} takes the samples apart, and {name} joins parts of several"
        return [ModelFinding("batch_mixed", message, FIX_VIEW, (), view.location)]
    unbatched = inputs[0].dim() == 2 and name in SEQUENCES
    in_time = inputs[0].dim() == 2 and not _mixes(problem, count, count - 1)  # rows that know earlier rows only
    if name in PRODUCTS or unbatched or in_time:
        return []
    message = f"{MIXED}: {name} computes along the first axis of the batch {tuple(_first(problem.batch).shape)}"
    fix = FIX_SEQUENCE if name in SEQUENCES else FIX_REDUCTION
    severity: Severity = "warning" if name in SEQUENCES and _may_be_time(problem.batch) else "error"
    return [ModelFinding("batch_mixed", message, fix, (), place.location, severity)]


def _first(batch: object) -> Tensor:
    return next(x for x in tensors_in(batch) if x.dim())


def _may_be_time(batch: object) -> bool:
    """Whether the first two axes of inputs and targets are alike, so that the first may be time on purpose.

    A length of 8, 16, 32 and so on is that of a batch.
    """
    first, *others = (x for x in tensors_in(batch) if x.dim())
    alike = bool(others) and first.dim() > 2 and others[-1].shape[:2] == first.shape[:2]
    return alike and not (_is_power_of_two(len(first)) and not _is_power_of_two(first.shape[1]))


def _is_power_of_two(length: int) -> bool:
    return length >= 8 and length & (length - 1) == 0


def _changes(before: Sequence[Tensor], after: Sequence[Tensor]) -> Iterator[Tensor]:
    """For each Tensor of numbers, which elements have changed; only for those with a change."""
    for x, y in zip(before, after):
        if x.shape == y.shape and x.layout == torch.strided and bool((mask := _differ(x, y)).any()):
            yield mask


def _drops_axis(inputs: Sequence[Tensor], outputs: Sequence[Tensor], count: int) -> bool:
    """Whether a function reduces the first axis, which is the batch."""
    reduced = all(y.dim() == 0 or len(y) != count for y in outputs)
    return inputs[0].dim() > 0 and len(inputs[0]) == count and reduced


def _share(mask: Tensor) -> float:
    return float(mask.sum()) / mask.numel() - 1e-9


def _has_axis(masks: Sequence[Tensor], count: int) -> bool:
    return any(count in mask.shape for mask in masks)


def _is_slice(count: int) -> Callable[[Tensor], bool]:
    """Whether all changes are in one entry of an axis that is as long as the batch."""

    def is_slice(mask: Tensor) -> bool:
        axes = [axis for axis, length in enumerate(mask.shape) if length == count]
        return any(int(mask.movedim(axis, 0).reshape(count, -1).any(1).sum()) == 1 for axis in axes)

    return is_slice
