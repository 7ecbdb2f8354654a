"""Structure of a model: unregistered layers, layers that are never called, frozen parameters."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from torch_opkit._diagnose.findings import ModelFinding, Severity
from torch_opkit._diagnose.source import assignment, names_in_use, replacement
from torch_opkit._diagnose.trace import Call
from torch_opkit._diagnose.values import attributes

REQUIRE = "pass requires_grad=True to the new nn.Parameter: it has that of its argument's place, not of the old one"
WEIGHT_ROLES = {"linear 1", "conv1d 1", "conv2d 1", "conv3d 1", "embedding 1", "bilinear 2"}
WEIGHT_NAMES = {"weight", "weights", "w", "W", "bias", "b", "gain", "gamma", "beta", "scale", "shift", "temperature"}
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


class ConstantObserver:
    """Observer of the constants that a model computes with: buffers and Tensors in attributes that no step changes."""

    def __init__(self, model: nn.Module) -> None:
        self.names: Any = WeakTensorKeyDictionary()  # constant -> its module, path and attribute
        self.values: dict[str, Tensor] = {}  # of a constant before the step
        self.uses: dict[str, set[str]] = defaultdict(set)  # path -> roles in functions, such as "linear 1"
        for name, module in model.named_modules():
            for attribute, x in () if type(module).__module__.startswith("torch.") else attributes(module).items():
                if isinstance(x, Tensor) and x.is_floating_point() and not x.requires_grad and x.numel():
                    path = f"{name}.{attribute}".lstrip(".")
                    self.names[x], self.values[path] = (module, path, attribute), x.clone()

    def __call__(self, call: Call) -> None:
        if call.bits:
            for i, x in enumerate(call.tensors):
                if x in self.names:
                    self.uses[self.names[x][1]].add(f"{call.name} {i}")

    def findings(self) -> list[ModelFinding]:
        """Constants that are used and named, or initialized, as weights are."""
        message = "a buffer or Tensor that is used as a weight: it is no parameter, so no step changes it"
        fix = "make it an nn.Parameter; if it is meant to be constant, give it another name than that of a weight"
        return [
            ModelFinding("not_a_parameter", message, fix, (path,), assignment(module, attribute))
            for x, (module, path, attribute) in self.names.items()
            if self.uses[path] and torch.equal(x, self.values[path]) and _is_weight(attribute, x, self.uses[path])
        ]


def _is_weight(name: str, x: Tensor, uses: set[str]) -> bool:
    """Whether a constant has random numbers as the weight of a layer; or the name of a weight, and its first values."""
    as_layer = bool(uses & WEIGHT_ROLES) and x.dim() > 1
    sizes = x.abs().flatten()
    is_random = len(sizes) >= 4 and len(sizes.unique()) == len(sizes)
    is_centered = bool(x.mean().abs() < 4 * x.std() / len(sizes) ** 0.5) if is_random else False
    is_neutral = bool((x == x.flatten()[0]).all()) and float(x.flatten()[0]) in (0.0, 1.0)
    return (as_layer and is_random and is_centered) or (name in WEIGHT_NAMES and (is_random or is_neutral))


def frozen(model: nn.Module) -> list[ModelFinding]:
    """Parameters with requires_grad=False: an error if they are all, or if one was replaced, else a note."""
    names = tuple(name for name, parameter in model.named_parameters() if not parameter.requires_grad)
    if not names:
        return []
    all_frozen = len(names) == sum(1 for _ in model.named_parameters())
    message = "requires_grad is False" + (" for every parameter, so nothing is learned" if all_frozen else "")
    fix = "call requires_grad_() on parameters that should be learned"
    replaced = [] if all_frozen else list(_frozen_by_replacement(model))
    others = tuple(name for name in names if name not in {name for name, _ in replaced})
    findings = []
    for name, location in replaced:
        cause = "requires_grad is False, while the rest of the layer, or the parameter that it replaces, is learned"
        findings.append(ModelFinding("frozen", cause, REQUIRE, (name,), location))
    if others:
        findings.append(ModelFinding("frozen", message, fix, others, severity="error" if all_frozen else "note"))
    return findings


def _frozen_by_replacement(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Frozen weights of layers whose bias is learned, or which the constructor replaces; and the lines that do it.

    Not where every weight is frozen: then only the biases are trained on purpose.
    """
    weights = [m.weight for m in model.modules() if isinstance(getattr(m, "weight", None), nn.Parameter)]
    for name, module in model.named_modules():
        parent, _, attribute = name.rpartition(".")
        weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
        if not isinstance(weight, nn.Parameter) or weight.requires_grad or not any(w.requires_grad for w in weights):
            continue
        line = replacement(model.get_submodule(parent), attribute, "weight", on_purpose=False)
        if line or (isinstance(bias, nn.Parameter) and bias.requires_grad):
            yield f"{name}.weight".lstrip("."), line
