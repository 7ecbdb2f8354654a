"""Everything that a step may change: saved before, and restored after."""

import inspect
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def preserved(model: nn.Module, loss_fn: object) -> Iterator[None]:
    """Restore parameters, buffers, gradients, attributes and random states on exit, also of modules of the loss."""
    saved = Saved()
    for module in [model, *modules_of(loss_fn)]:
        saved.add_module(module)
    devices = {p.device.index or 0 for p in model.parameters() if p.is_cuda}
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # the state that user code draws from
    with torch.random.fork_rng(devices=sorted(devices)):
        try:
            yield
        finally:
            saved.restore()
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def modules_of(function: Any) -> list[nn.Module]:
    """Modules that a function is, is bound to, or refers to."""
    if isinstance(function, nn.Module):
        return [function]
    owner = getattr(function, "__self__", None)
    try:
        variables = inspect.getclosurevars(inspect.unwrap(function))
    except (TypeError, ValueError):
        return [owner] if isinstance(owner, nn.Module) else []
    values = [owner, *variables.nonlocals.values(), *variables.globals.values()]
    return [value for value in values if isinstance(value, nn.Module)]


class Saved:
    """Copies of modules, containers and Tensors, each once."""

    def __init__(self) -> None:
        self.known, self.undo = set[int](), list[Callable[[], None]]()

    def add_module(self, module: nn.Module) -> None:
        for child in module.modules():
            if id(child) not in self.known:
                self.known.add(id(child))
                self.undo.append(partial(_restore_items, vars(child), dict(vars(child))))
                tensors = (*child.parameters(recurse=False), *child.buffers(recurse=False))  # not in vars() of a script
                for value in (*vars(child).values(), *tensors):
                    self.add(value)

    def add(self, value: object) -> None:
        """Save Tensors, and containers that the model may write to."""
        if id(value) in self.known:
            return
        if isinstance(value, Tensor):
            self.undo.append(_save_tensor(value))
        elif isinstance(value, dict):
            self.undo.append(partial(_restore_items, value, dict(value)))
        elif isinstance(value, list | deque):
            self.undo.append(partial(_restore_items, value, list(value)))
        elif isinstance(value, set):
            self.undo.append(partial(_restore_items, value, set(value)))
        if isinstance(value, Tensor | dict | list | deque | set | tuple):
            self.known.add(id(value))
        if isinstance(value, dict | list | deque | tuple):
            for element in value.values() if isinstance(value, dict) else value:
                self.add(element)

    def restore(self) -> None:
        for function in reversed(self.undo):
            function()


def _save_tensor(x: Tensor) -> Callable[[], None]:
    """What restores values, gradient and flags of a Tensor."""
    if torch.nn.parameter.is_lazy(x) or x.is_inference() or x.layout != torch.strided:
        return lambda: None
    data, values, requires_grad, is_leaf = x.data, x.data.clone(), x.requires_grad, x.is_leaf
    gradient = x.grad if is_leaf else None
    gradient_values = None if gradient is None else gradient.clone()

    def restore() -> None:
        with torch.no_grad():
            if not ((data == values) | ((data != data) & (values != values))).all():  # NaN equals NaN
                data.copy_(values)
            if is_leaf and not x.is_leaf:
                x.detach_()
            x.data = data
            if is_leaf:
                x.requires_grad_(requires_grad)
                x.grad = gradient
            if gradient is not None and gradient_values is not None:
                gradient.copy_(gradient_values)

    return restore


def _restore_items(value: Any, items: Any) -> None:
    """Of a dict, set, list or deque."""
    value.clear()
    (value.extend if isinstance(value, list | deque) else value.update)(items)
