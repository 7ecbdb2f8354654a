"""Leaves of the graph that no optimizer of the model's parameters will update."""

from torch import nn
from torch.utils._pytree import tree_leaves

from torchcommodity.opkit._diagnose.findings import Finding
from torchcommodity.opkit._diagnose.source import call_line
from torchcommodity.opkit._diagnose.step import Problem, Step

NEW = "a parameter is made in the forward pass, after the optimizer was given the model's parameters"
FOREIGN = "a Tensor with requires_grad from outside of the model, which its optimizer does not see"


def foreign_leaves(problem: Problem, first: Step, second: Step) -> list[Finding]:
    """Parameters made in the forward pass, and leaves that belong to no module of the model."""
    held, findings = _held(problem.model, first), dict[str, Finding]()
    for leaf, place in first.trace.leaves:
        registered = any(leaf is p for p in problem.model.parameters())
        kept = registered or any(leaf is other for other, _ in second.trace.leaves)
        if id(leaf) in held or (not kept and not isinstance(leaf, nn.Parameter)):
            continue
        if registered or not kept:
            location = call_line(place.code, "Parameter") or place.location
            finding = Finding("new_parameter", NEW, "make it in __init__", (), location)
        else:
            fix = "make it an nn.Parameter, or a layer, of the model"
            finding = Finding("not_a_parameter", FOREIGN, fix, (), place.location)
        findings.setdefault(finding.location, finding)
    return list(findings.values())


def _held(model: nn.Module, step: Step) -> set[int]:
    """Leaves that `unregistered` has reported: attributes of the model, and of layers in plain containers."""
    held = set[int]()
    for module in model.modules():
        attributes = {k: v for k, v in vars(module).items() if k not in vars(nn.Module())}
        for leaf in tree_leaves((attributes, dict(module.named_buffers(recurse=False)))):
            held |= {id(leaf)} | ({id(p) for p in leaf.parameters()} if isinstance(leaf, nn.Module) else set())
    return held
