"""What is not part of a model, on a device without float64: samples of returns, reports and diagnoses."""

import copy
from collections.abc import Callable, Iterator

import torch
from agreement import disagreements
from layers import Call
from torch import nn
from torch.nn import functional as F

import torch_opkit as opkit
from torchcommodity import optimize, risk
from torchcommodity.optimize._compile.comparison import differences

ROUNDING = 1e-4  # of the relative error of int8 weights


def sample_check(device: torch.device) -> Iterator[str]:
    """Value at risk and expected shortfall; 0.9 * 110 rounds to more than 99."""
    returns = 0.01 * torch.randn(3, 110)
    for function in (risk.value_at_risk, risk.expected_shortfall):
        yield from disagreements(Call(lambda r, f=function: f(r, 0.9)), (returns,), device)


def quantization_check(device: torch.device) -> Iterator[str]:
    model, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval(), torch.randn(32, 8)
    reports = [
        optimize.quantization_report(moved, optimize.quantize(moved), x.to(where))
        for where in (torch.device("cpu"), device)
        for moved in [copy.deepcopy(model).to(where)]
    ]
    expected, actual = (report.relative_error for report in reports)
    if not expected or abs(actual - expected) > ROUNDING * expected:
        yield f"relative error: expected {expected}; got {actual}"


def differences_check(device: torch.device) -> Iterator[str]:
    """Of the outputs of two runs, as `optimize.compile` compares them."""
    x = torch.ones(4).to(device)
    (row,) = differences({"output": x}, {"output": x + 0.5})
    if row.absolute != 0.5:
        yield f"expected 0.5; got {row}"


def diagnose_check(device: torch.device) -> Iterator[str]:
    """A model whose units are dead or saturated, with probabilities in a loss that takes logits."""
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4), nn.Sigmoid(), nn.Linear(4, 2), nn.Softmax(1)).to(
        device
    )
    nn.init.constant_(model[0].bias, -9.0)
    nn.init.constant_(model[2].bias, 30.0)
    batch = torch.rand(64, 3, device=device), torch.randint(2, (64,)).to(device)
    kinds = {finding.kind for finding in opkit.diagnose(model, batch, F.cross_entropy)}
    if kinds != {"double_softmax", "dead_units", "saturated_units"}:
        yield f"findings: {kinds}"


TOOLS: dict[str, Callable[[torch.device], Iterator[str]]] = {
    "risk of a sample": sample_check,
    "optimize.quantization_report": quantization_check,
    "differences of outputs": differences_check,
    "opkit.diagnose": diagnose_check,
}
