"""Losses that are computed from the wrong thing: probabilities instead of logits, shapes that broadcast."""

from collections.abc import Iterator

import torch
from torch import Tensor

from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.trace import Call, Trace
from torch_opkit._widest import widest

ELEMENTWISE = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
PRODUCTS = {"sub", "rsub", "subtract", "__sub__", "__rsub__", "mul", "multiply", "__mul__", "__rmul__"}
SUMS = {"add", "__add__", "__radd__"}
RESHAPES = (
    "View", "UnsafeView", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "TBackward", "Permute", "Clone", "Slice",
    "Select", "Alias", "ToCopy", "Expand",
)  # fmt: skip
FIX_LOGITS = "pass the logits; this loss has the softmax or sigmoid in it"
FIX_LOG = "pass log-probabilities: F.log_softmax before nll_loss, or cross_entropy on the logits"


class LossObserver:
    """Observer of the calls of loss functions, and of differences and products of outputs and targets."""

    trace: Trace  # which it observes

    def __init__(self) -> None:
        self.findings: dict[str, ModelFinding] = {}  # by location

    def __call__(self, call: Call) -> None:
        if call.tensors and call.bits & self.trace.parameter_bits:
            x, y = (*call.tensors, call.tensors[0])[:2]
            for kind, message, fix in self._faults(call, x, y):
                finding = ModelFinding(kind, message, fix, (), call.place.location)
                self.findings.setdefault(finding.location, finding)

    def _faults(self, call: Call, x: Tensor, y: Tensor) -> Iterator[tuple[str, str, str]]:
        if call.name == "cross_entropy" and _are_probabilities(x):
            yield "double_softmax", "cross_entropy gets probabilities, and applies a softmax to them", FIX_LOGITS
        if call.name == "log_softmax" and _is_output_of(x, "SoftmaxBackward"):
            yield "double_softmax", "log_softmax gets the output of a softmax, and applies another", FIX_LOGITS
        if call.name == "binary_cross_entropy_with_logits" and _is_output_of(x, "SigmoidBackward"):
            yield "double_softmax", f"{call.name} gets the output of a sigmoid, and applies another", FIX_LOGITS
        if call.name == "binary_cross_entropy" and _is_output_of(x, "SigmoidBackward", "SigmoidBackward"):
            yield "double_softmax", "a sigmoid is applied to the output of a sigmoid", "apply one of them"
        if call.name == "nll_loss" and _are_probabilities(x):
            yield "double_softmax", "nll_loss gets probabilities, not their logarithms", FIX_LOG
        elif call.name == "nll_loss" and not _are_probabilities(x.exp(), tolerance=0.1):
            yield "not_log_probabilities", "nll_loss gets values that are not log-probabilities", FIX_LOG
        if (call.name in ELEMENTWISE | PRODUCTS and self._is_outer(call.name, x, y)) or self._is_outer_sum(call, x, y):
            shapes = f"{tuple(x.shape)} and {tuple(y.shape)}"
            message = f"{call.name} broadcasts {shapes} to every pair of samples"
            yield "broadcast", message, "give both the same shape: output.squeeze(-1), or target.unsqueeze(-1)"

    def _is_outer(self, name: str, x: Tensor, y: Tensor) -> bool:
        """An output (N, 1) and a Tensor (N,) of the batch, or the other way round."""
        outputs = [bool(self.trace.bits_of(t) & self.trace.parameter_bits) for t in (x, y)]
        of_batch = [bool(self.trace.bits_of(t) & self.trace.batch_bit) for t in (x, y)]
        if outputs not in ([True, False], [False, True]) or not all(of_batch) or x.numel() != y.numel():
            return False
        result = torch.broadcast_shapes(x.shape, y.shape)
        return x.numel() > 2 and result.numel() > x.numel() and (name in ELEMENTWISE or {x.dim(), y.dim()} == {1, 2})

    def _is_outer_sum(self, call: Call, x: Tensor, y: Tensor) -> bool:
        """Outputs (N, 1) and (N,) of two branches; an axis of length 1 that was added by hand is meant."""
        if call.name not in PRODUCTS | SUMS or {x.dim(), y.dim()} != {1, 2}:
            return False
        column, row = (x, y) if x.dim() == 2 else (y, x)
        of_both = self.trace.bits_of(x) & self.trace.bits_of(y) & self.trace.batch_bit
        branches = of_both and all(self.trace.bits_of(t) & self.trace.parameter_bits for t in (x, y))
        by_hand = type(column.grad_fn).__name__.startswith(RESHAPES)
        return bool(branches) and not by_hand and len(row) > 2 and column.shape == (len(row), 1)


def _are_probabilities(x: Tensor, tolerance: float = 1e-3) -> bool:
    """Whether rows along the axis of classes are between 0 and 1, and their sum is 1."""
    x = widest(x.detach())
    axis = 1 if x.dim() > 1 else 0
    if not x.dim() or x.shape[axis] < 2 or not bool((x >= 0).all()):
        return False
    return bool(((x.sum(axis) - 1).abs() < tolerance).all())


def _is_output_of(x: Tensor, *names: str) -> bool:
    """Whether a Tensor is the result of these nodes of the graph, the last one first, but for its shape."""
    node = x.grad_fn
    for name in names:
        while node is not None and type(node).__name__.startswith(RESHAPES) and node.next_functions:
            node = node.next_functions[0][0]
        if not type(node).__name__.startswith(name):
            return False
        node = node.next_functions[0][0] if node else None
    return True
