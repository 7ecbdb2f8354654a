"""`torchcommodity doctor`: versions, devices and a self-test."""

import typer

from torchcommodity.cli import _output as output


def doctor() -> None:
    """Print versions, devices and the result of a self-test.

    Exit code 1: the self-test failed.
    """
    import torch

    from torchcommodity import ops
    from torchcommodity.report import package_versions

    failure = self_test()
    rows = [
        *package_versions().items(),
        ("native library", f"loaded from {ops.NATIVE.path}" if ops.NATIVE else f"not loaded: {ops.NATIVE.reason}"),
        ("devices", ", ".join(devices())),
        ("threads", torch.get_num_threads()),
        ("self-test", failure or "passed: values and gradients are correct"),
    ]
    output.console().print(output.table("torchcommodity doctor", ("item", "state"), rows, (0, 1)))
    if failure:
        raise typer.Exit(1)


def devices() -> list[str]:
    """Devices that torch can use, with the memory of GPUs."""
    import torch

    names = ["cpu"]
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            free, total = (size / 2**30 for size in torch.cuda.mem_get_info(i))
            names.append(f"cuda:{i} ({torch.cuda.get_device_name(i)}, {free:.1f} of {total:.1f} GiB free)")
    if torch.backends.mps.is_available():
        names.append("mps")
    return names


def self_test() -> str:
    """Compare y_t = a y_{t-1} + b_t and its gradient with known values; return the difference in words, or "".

    >>> self_test()
    ''
    """
    import torch

    from torchcommodity import ops

    b = torch.ones(4, 1, dtype=torch.float64, requires_grad=True)
    y = ops.linear_recurrence(torch.full((4, 1), 0.5, dtype=torch.float64), b)
    y[-1].sum().backward()
    expected = torch.tensor([1.0, 1.5, 1.75, 1.875], dtype=torch.float64)
    if not torch.equal(y.detach()[:, 0], expected):
        return f"linear_recurrence: expected {expected.tolist()}; got {y.detach()[:, 0].tolist()}"
    gradient = torch.tensor([0.125, 0.25, 0.5, 1.0], dtype=torch.float64)
    if b.grad is None or not torch.equal(b.grad[:, 0], gradient):
        return f"linear_recurrence: expected the gradient {gradient.tolist()}; got {b.grad}"
    return ""
