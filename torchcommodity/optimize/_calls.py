"""Call a model and its loss; what they raise is shown with the shapes that they were given."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from torchcommodity.opkit.arguments import current_operation, raise_invalid
from torchcommodity.optimize._module import call

Loss = Callable[..., Tensor]  # loss(output, target), or loss(output) for batches without a target


def call_model(module: nn.Module, inputs: object) -> object:
    """Forward pass; raises ValueError that shows the inputs beside the model's own error."""
    try:
        return call(module, inputs)
    except Exception as error:
        raise ValueError(
            f"{current_operation()}: the model does not run on {describe(inputs)}: {first_line(error)}"
        ) from error


def call_loss(loss_fn: Loss, output: object, target: Sequence[object]) -> Tensor:
    """Loss of an output, checked: a scalar with a gradient."""
    check_callable("loss_fn must be a function loss_fn(output, target)", loss_fn)
    try:
        loss = loss_fn(output, *target)
    except Exception as error:
        got = " and target ".join([describe(output), *map(describe, target)])
        raise ValueError(
            f"{current_operation()}: loss_fn does not run on the output {got}: {first_line(error)}"
        ) from error
    return check_scalar(loss)


def first_line(error: Exception) -> str:
    """First line of an error's message, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_callable(rule: str, function: object) -> None:
    """Check that an argument can be called."""
    if not callable(function):
        raise TypeError(f"{current_operation()}: {rule}; got {type(function).__name__}")


def check_scalar(loss: object) -> Tensor:  # ()
    """Check that a loss is a scalar with a gradient, without reading its value."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise_invalid(current_operation(), "the loss must be a scalar Tensor; reduce it with .mean()", loss=shape)
    if not loss.requires_grad:
        rule = "the loss must have a gradient; opkit.diagnose(model, batch, loss_fn) says where it is cut"
        raise_invalid(current_operation(), rule, requires_grad=False)
    return loss


def describe(value: object) -> str:
    """Shapes and dtypes of nested tensors.

    >>> import torch
    >>> describe((torch.ones(2, 3), {"mask": torch.ones(2, dtype=torch.bool)}, None))
    '(float32 (2, 3), mask=bool (2,), None)'
    """
    if isinstance(value, Tensor):
        shape = f"nested ({value.size(0)}, ...)" if value.is_nested else str(tuple(value.shape))
        return f"{str(value.dtype).removeprefix('torch.')} {shape}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={describe(x)}" for key, x in value.items())
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(describe, value))})"
    return "None" if value is None else type(value).__name__
