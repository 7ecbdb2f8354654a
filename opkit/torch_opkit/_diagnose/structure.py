"""Structure of a model: unregistered layers, layers that are never called, frozen parameters."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from torch_opkit._diagnose.findings import ModelFinding, Severity
from torch_opkit._diagnose.source import assignment, names_in_use
from torch_opkit._diagnose.values import attributes

CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def unregistered(model: nn.Module) -> list[ModelFinding]:
    """Layers in plain containers, and Tensors with requires_grad that are not parameters."""
    modules, findings = {id(module) for module in model.modules()}, list[ModelFinding]()
    for name, module in model.named_modules():
        for attribute, value in attributes(module).items():
            leaves, path = tree_leaves(value), f"{name}.{attribute}".lstrip(".")
            layers = [x for x in leaves if isinstance(x, nn.Module) and id(x) not in modules]
            if any(parameter.requires_grad for layer in layers for parameter in layer.parameters()):
                message = "layers in a plain container, which neither the model nor its optimizer sees"
                fix = "store layers in nn.ModuleList, nn.ModuleDict or attributes"
                findings.append(ModelFinding("plain_list", message, fix, (path,), assignment(module, attribute)))
            learnable = [x for x in leaves if isinstance(x, Tensor) and x.is_leaf and x.requires_grad]
            registered = [
                x for x in learnable if isinstance(x, nn.Parameter) and any(x is p for p in module.parameters())
            ]
            if len(registered) < len(learnable):
                message, fix = "a Tensor with requires_grad that is not a parameter", "wrap it in nn.Parameter"
                if any(isinstance(x, nn.Parameter) for x in leaves):
                    message = "a parameter in a plain container, which the optimizer does not see"
                    fix = "use nn.ParameterList"
                findings.append(ModelFinding("not_a_parameter", message, fix, (path,), assignment(module, attribute)))
    return findings


def unused_layers(
    model: nn.Module, names: Sequence[str], loss_fn: Callable[..., Any] | None, some_learn: bool
) -> list[ModelFinding]:
    """Findings for parameters that no function has used: an error for a layer that `forward` does not name.

    An element of a container, and a layer that `forward` names but skips, may be an alternative: a note.
    """
    if not names:
        return []
    in_use = names_in_use(model.modules(), [loss_fn])
    groups = defaultdict[str, list[str]](list)
    for name in names:
        groups[_unused_owner(model, name, set(names))].append(name)
    findings = []
    for owner, group in groups.items():
        parent, _, attribute = owner.rpartition(".")
        module = model.get_submodule(parent)
        optional = isinstance(module, CONTAINERS) or attribute in in_use or "getattr" in in_use
        severity: Severity = "note" if optional and some_learn else "error"
        message = "defined, but never called in the forward pass" + (" of this batch" if optional else "")
        location, fix = assignment(*_named_in_source(model, owner)), "call it, or remove it"
        findings.append(ModelFinding("never_called", message, fix, tuple(group), location, severity))
    return findings


def _unused_owner(model: nn.Module, name: str, unused: set[str]) -> str:
    """The largest module around a parameter of which nothing is used; else the parameter itself."""
    owner, parts = name, name.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        path = ".".join(parts[:depth])
        module = model.get_submodule(path)
        if not all(f"{path}.{key}" in unused for key, p in module.named_parameters() if p.requires_grad):
            break
        owner = path
    return owner


def _named_in_source(model: nn.Module, owner: str) -> tuple[nn.Module, str]:
    """The module and attribute whose assignment defines a layer: of the container, for an element of one."""
    parent, _, attribute = owner.rpartition(".")
    module = model.get_submodule(parent)
    while parent and type(module).__module__.startswith("torch."):
        parent, _, attribute = parent.rpartition(".")
        module = model.get_submodule(parent)
    return module, attribute


def frozen(model: nn.Module) -> list[ModelFinding]:
    """Parameters with requires_grad=False: an error if they are all, else a note."""
    names = tuple(name for name, parameter in model.named_parameters() if not parameter.requires_grad)
    if not names:
        return []
    all_frozen = len(names) == sum(1 for _ in model.named_parameters())
    message = "requires_grad is False" + (" for every parameter, so nothing is learned" if all_frozen else "")
    fix = "call requires_grad_() on parameters that should be learned"
    return [ModelFinding("frozen", message, fix, names, severity="error" if all_frozen else "note")]
