"""What an exception of the user's code, or of the backward pass, says about gradients."""

import re
from typing import NamedTuple

from torch_opkit._diagnose.findings import ModelFinding
from torch_opkit._diagnose.locations import raised_at
from torch_opkit._diagnose.step import TrainingStep
from torch_opkit._torch_private import correct_gradient_count


class Pattern(NamedTuple):
    """A part of PyTorch's message, and the finding that it stands for."""

    text: str
    kind: str
    message: str
    fix: str


IN_PLACE_FIX = "write y = f(x) instead of x.f_() or x[i] = y, or clone first"
PATTERNS = (
    Pattern(
        "returned an incorrect number of gradients", "wrong_backward",
        "the backward of an autograd.Function returns a wrong number of gradients",
        "return one gradient for each argument of forward, None for what is no Tensor",
    ),
    Pattern(
        "returned an invalid gradient", "wrong_backward",
        "the backward of an autograd.Function returns a gradient of a wrong shape",
        "return a gradient of the shape of the argument: sum over broadcast axes",
    ),
    Pattern(
        "Can't call numpy() on Tensor that requires grad", "python",
        "an array of NumPy has no gradient, and PyTorch refuses to make one", "compute with torch functions",
    ),
    Pattern(
        "modified by an inplace operation", "in_place", "a Tensor that the backward pass needs is changed in place",
        IN_PLACE_FIX,
    ),
    Pattern(
        "leaf Variable that requires grad is being used in an in-place", "in_place",
        "a parameter, or a view of one, is changed in place", "compute a new Tensor, and leave the parameter as it is",
    ),
    Pattern("is a view and is being modified inplace", "in_place", "a view is changed in place", IN_PLACE_FIX),
    Pattern("modified inplace", "in_place", "a Tensor of the graph is changed in place", IN_PLACE_FIX),
    Pattern(
        "nference tensor", "inference_tensor", "a Tensor made under torch.inference_mode takes part in training",
        "make it outside of inference_mode (torch.no_grad instead), or clone() it before use",
    ),
    Pattern(
        "backward through the graph a second time", "graph_kept", "the graph of the previous step is still in use",
        "detach what is kept from step to step: self.state = state.detach()",
    ),
    Pattern(
        "can only change requires_grad flags of leaf variables", "not_differentiable",
        "requires_grad is set on a result, which is not a parameter", "leave the result in the graph, or detach it",
    ),
    Pattern(
        "nly Tensors of floating point", "integer", "an integer Tensor cannot require a gradient",
        "make it a floating-point Tensor",
    ),
    Pattern("implicitly created only for scalar outputs", "not_scalar", "backward() needs a scalar", "loss.mean()"),
    Pattern(
        "does not require grad and does not have a grad_fn", "no_grad", "the loss is not connected to any parameter",
        "remove detach, .item() and no_grad between the parameters and the loss",
    ),
    Pattern(
        "don't support automatic differentiation", "in_place", "out= writes a result outside of the graph",
        "use the returned Tensor, without out=",
    ),
    Pattern(
        "derivative for aten", "not_differentiable", "PyTorch has no derivative of this function",
        "use a differentiable one",
    ),
    Pattern("derivative for set_ is not implemented", "data", "set_() replaces a result", "use a new name"),
    Pattern(
        "cannot assign", "crash", "a Tensor cannot replace a parameter of a module",
        "pass it to the functional form (F.linear(x, weight)), or use torch.func.functional_call",
    ),
    Pattern(
        "all elements of input should be between 0 and 1", "crash",
        "binary_cross_entropy gets values outside [0, 1]", "use binary_cross_entropy_with_logits, or a sigmoid before",
    ),
)  # fmt: skip


def explain(step: TrainingStep) -> ModelFinding:
    """The finding for the exception that has ended a step."""
    error = step.error
    assert error is not None
    location = raised_at(error.__traceback__) or step.flow.running.location
    line = correct_gradient_count(next(iter(str(error).splitlines()), "").partition(" Hint:")[0].strip())
    pattern = next((p for p in PATTERNS if p.text in str(error)), None)
    if pattern is None or not isinstance(error, RuntimeError | TypeError | ValueError | NotImplementedError):
        where = "backward pass" if step.in_backward else "forward pass or the loss function"
        message = f"the {where} raises {type(error).__name__}: {line}"
        return ModelFinding("crash", message, "mend this first; gradients are not examined", (), location)
    message = f"{pattern.message} ({line})"
    if pattern.kind == "in_place" and step.in_backward:
        location = _changed_in_place(step, str(error)) or location
    if pattern.kind == "data":
        location = next((event.location for event in step.trace.events if event.hidden_write), location)
    if pattern.kind == "wrong_backward":  # the `backward` of the user's function that the message names
        nodes = step.flow.nodes.items()
        location = next((place.location for node, place in nodes if type(node).__name__ in str(error)), "")
    return ModelFinding(pattern.kind, message, pattern.fix, (), location)


def _changed_in_place(step: TrainingStep, error: str) -> str:
    """The last in-place change of a Tensor with the shape, and if possible the node, in autograd's message."""
    match = re.search(r"\[([\d, ]*)\]", error)
    shape = tuple(int(n) for n in match[1].split(",") if n.strip()) if match else ()
    same_shape = [event for event in step.trace.writes if sorted(event.shape) == sorted(shape)] or step.trace.writes
    same_node = [event for event in same_shape if event.node and f" {event.node}," in error] or same_shape
    return same_node[-1].location if same_node else ""
