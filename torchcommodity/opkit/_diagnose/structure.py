"""Structure of a model: unregistered layers, layers that are never called, frozen parameters."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._diagnose.findings import Finding


def unregistered(model: nn.Module) -> list[Finding]:
    """Layers in plain containers, and Tensors with requires_grad that are not parameters."""
    registered = {id(module) for module in model.modules()}
    return [finding for name, module in model.named_modules() for finding in _unregistered(name, module, registered)]


def _unregistered(name: str, module: nn.Module, registered: set[int]) -> Iterator[Finding]:
    for attribute, value in vars(module).items():
        if attribute.startswith("_") and attribute in vars(nn.Module()):
            continue
        location, path = _assignment(module, attribute), f"{name}.{attribute}".lstrip(".")
        leaves = tree_leaves(value)
        if any(isinstance(x, nn.Module) and id(x) not in registered and _has_parameters(x) for x in leaves):
            message = "layers in a plain container, which neither the model nor its optimizer sees"
            fix = "store layers in nn.ModuleList, nn.ModuleDict or attributes"
            yield Finding("plain_list", message, fix, (path,), location)
        if any(_is_unregistered_parameter(x) for x in leaves):
            message, fix = "a Tensor with requires_grad that is not a parameter", "wrap it in nn.Parameter"
            yield Finding("not_a_parameter", message, fix, (path,), location)


def _has_parameters(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def _is_unregistered_parameter(x: Any) -> bool:
    return isinstance(x, Tensor) and not isinstance(x, nn.Parameter) and x.is_leaf and x.requires_grad


def never_called(model: nn.Module, names: list[str]) -> list[Finding]:
    """Findings for parameters that no function has used, by layer."""
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    findings = []
    for layer, parameters in layers.items():
        parent, _, attribute = (layer or parameters[0]).rpartition(".")
        location = _assignment(model.get_submodule(parent), attribute)
        message = "defined, but never called in the forward pass"
        findings.append(Finding("never_called", message, "call it, or remove it", tuple(parameters), location))
    return findings


def frozen(model: nn.Module) -> list[Finding]:
    """Parameters with requires_grad=False: an error if they are all, else a note."""
    names = tuple(name for name, parameter in model.named_parameters() if not parameter.requires_grad)
    if not names:
        return []
    all_frozen = len(names) == sum(1 for _ in model.parameters())
    message = "requires_grad is False" + (" for every parameter, so nothing is learned" if all_frozen else "")
    fix = "call requires_grad_() on parameters that should be learned"
    return [Finding("frozen", message, fix, names, severity="error" if all_frozen else "note")]


def _assignment(module: nn.Module, attribute: str) -> str:
    """The line of the module's class with `self.attribute`, or else the first line of the class."""
    try:
        lines, first = inspect.getsourcelines(type(module))
        file = inspect.getsourcefile(type(module)) or ""
    except (OSError, TypeError):
        return ""
    for number, line in enumerate(lines):
        if re.search(rf"self\.{re.escape(attribute)}\b", line):
            return f"{file}:{first + number}"
    return "" if file.startswith(torch.__path__[0]) else f"{file}:{first}"
