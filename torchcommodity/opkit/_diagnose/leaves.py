"""Leaves of the graph that no optimizer of the model's parameters will update."""

from torch import nn
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.source import call_line
from torchcommodity.opkit._diagnose.step import Problem, Step
from torchcommodity.opkit._diagnose.values import attributes

NEW = "a parameter is made in the forward pass, after the optimizer was given the model's parameters"
FOREIGN = "a Tensor with requires_grad from outside of the model, which its optimizer does not see"


def foreign_leaves(problem: Problem, first: Step, second: Step) -> list[Finding]:
    """Parameters made in the forward pass, and leaves that belong to no module of the model."""
    reported, findings = _unregistered_leaves(problem.model), dict[str, Finding]()
    for leaf, place in first.trace.leaves:
        registered = any(leaf is p for p in problem.model.parameters())
        persistent = registered or any(leaf is other for other, _ in second.trace.leaves)
        if id(leaf) in reported or (not persistent and not isinstance(leaf, nn.Parameter)):
            continue
        if registered or not persistent:
            location = call_line(place.code, "Parameter") or place.location
            finding = Finding("new_parameter", NEW, "make it in __init__", (), location)
        else:
            fix = "make it an nn.Parameter, or a layer, of the model"
            finding = Finding("not_a_parameter", FOREIGN, fix, (), place.location)
        findings.setdefault(finding.location, finding)
    return list(findings.values())


def _unregistered_leaves(model: nn.Module) -> set[int]:
    """What `unregistered` has reported, by id: attributes of the model, and of layers in plain containers."""
    leaves = [leaf for module in model.modules() for leaf in tree_leaves(attributes(module))]
    return {id(p) for leaf in leaves for p in (leaf, *(leaf.parameters() if isinstance(leaf, nn.Module) else ()))}
