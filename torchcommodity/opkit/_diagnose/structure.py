"""What a model is made of: layers out of its sight, layers that are never called, parameters that are frozen."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._diagnose.findings import Finding


def structure(model: nn.Module) -> list[Finding]:
    registered = {id(module) for module in model.modules()}
    return [finding for name, module in model.named_modules() for finding in _hidden(name, module, registered)]


def _hidden(name: str, module: nn.Module, registered: set[int]) -> Iterator[Finding]:
    for attribute, value in vars(module).items():
        if attribute.startswith("_") and attribute in vars(nn.Module()):
            continue
        where, path = _assigned(module, attribute), f"{name}.{attribute}".lstrip(".")
        leaves = tree_leaves(value)
        if any(isinstance(x, nn.Module) and id(x) not in registered and _learns(x) for x in leaves):
            remedy = "keep layers in nn.ModuleList, nn.ModuleDict or as attributes"
            yield Finding(
                "plain_list", "layers that the model does not know of, nor its optimizer", remedy, (path,), where
            )
        if any(_meant_to_learn(x) for x in leaves):
            remedy = "wrap it in nn.Parameter"
            yield Finding(
                "not_a_parameter", "a Tensor that wants a gradient but is no parameter", remedy, (path,), where
            )


def _learns(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def _meant_to_learn(x: Any) -> bool:
    return isinstance(x, Tensor) and not isinstance(x, nn.Parameter) and x.is_leaf and x.requires_grad


def never_called(model: nn.Module, names: list[str]) -> list[Finding]:
    """Of parameters that no function has seen."""
    by_layer: dict[str, list[str]] = {}
    for name in names:
        by_layer.setdefault(name.rpartition(".")[0], []).append(name)
    findings = []
    for layer, parameters in by_layer.items():
        parent, _, attribute = (layer or parameters[0]).rpartition(".")
        where = _assigned(model.get_submodule(parent), attribute)
        message = "defined, and never called in the forward pass"
        findings.append(Finding("never_called", message, "call it, or remove it", tuple(parameters), where))
    return findings


def frozen(model: nn.Module) -> list[Finding]:
    names = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if not names:
        return []
    everything = len(names) == sum(1 for _ in model.parameters())
    message = "requires_grad is False" + (" for every parameter: nothing can be learned" if everything else "")
    remedy = "call requires_grad_() if they are to learn"
    return [Finding("frozen", message, remedy, tuple(names), severity="fault" if everything else "note")]


def _assigned(module: nn.Module, attribute: str) -> str:
    """Where the class of the module says `self.attribute`."""
    try:
        lines, first = inspect.getsourcelines(type(module))
        file = inspect.getsourcefile(type(module)) or ""
    except (OSError, TypeError):
        return ""
    for number, line in enumerate(lines):
        if re.search(rf"self\.{re.escape(attribute)}\b", line):
            return f"{file}:{first + number}"
    return "" if file.startswith(torch.__path__[0]) else f"{file}:{first}"
