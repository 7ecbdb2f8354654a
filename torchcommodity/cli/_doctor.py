"""`torchcommodity doctor`: what is installed, what works, and why not."""

import torch
import typer

from torchcommodity import ops
from torchcommodity.cli import _show as show
from torchcommodity.report import package_versions


def doctor() -> None:
    """Versions, native library, devices, threads, and a small test of the operators; exit code 1 if that fails."""
    screen = show.console()
    native = f"loaded from {ops.NATIVE.path}" if ops.NATIVE else f"not loaded: {ops.NATIVE.reason}"
    wrong = self_test()
    rows = [
        *package_versions().items(),
        ("native library", native),
        ("devices", ", ".join(devices())),
        ("threads", torch.get_num_threads()),
        ("self-test", wrong or "passed: values and gradients are right"),
    ]
    screen.print(show.table("torchcommodity doctor", ("what", "state"), rows, (0, 1)))
    if wrong:
        raise typer.Exit(1)


def devices() -> list[str]:
    """What torch can compute on here."""
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def self_test() -> str:
    """What is wrong with y_t = a y_{t-1} + b_t and its gradient, in words; nothing if they are right.

    >>> self_test()
    ''
    """
    b = torch.ones(4, 1, dtype=torch.float64, requires_grad=True)
    y = ops.linear_recurrence(torch.full((4, 1), 0.5, dtype=torch.float64), b)
    y[-1].sum().backward()
    expected = torch.tensor([1.0, 1.5, 1.75, 1.875], dtype=torch.float64)
    if not torch.equal(y.detach()[:, 0], expected):
        return f"linear_recurrence: expected {expected.tolist()}; got {y.detach()[:, 0].tolist()}"
    powers = torch.tensor([0.125, 0.25, 0.5, 1.0], dtype=torch.float64)
    if b.grad is None or not torch.equal(b.grad[:, 0], powers):
        return f"linear_recurrence: expected the gradient {powers.tolist()}; got {b.grad}"
    return ""
