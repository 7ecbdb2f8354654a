"""`diagnose`: examine training steps of a model."""

import copy
import reprlib
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn

from torch_opkit._diagnose.batch import batch_requires_grad, grows_with_batch, mixed_samples
from torch_opkit._diagnose.call import compute_loss, first_batch, fresh
from torch_opkit._diagnose.failures import explain
from torch_opkit._diagnose.findings import Diagnosis, ModelFinding, ranked
from torch_opkit._diagnose.gradients import loss_faults, not_finite, sizes, symmetric
from torch_opkit._diagnose.links import broken_links, hidden_writes
from torch_opkit._diagnose.second_step import computed_once, second_step, stored_graphs
from torch_opkit._diagnose.state import preserved
from torch_opkit._diagnose.step import Problem
from torch_opkit._diagnose.structure import frozen, unregistered
from torch_opkit._diagnose.zero import zero_gradients

Loss = Callable[..., Any]


def diagnose(model: nn.Module, batch: object, loss_fn: Loss | None = None) -> Diagnosis:
    """Find what keeps a model from learning: broken links to the loss, degenerate gradients, dead units.

    It takes a few training steps and restores the model: parameters, buffers, gradients, attributes, training mode and
    random states are unchanged afterwards.

    Args:
        model: any module.
        batch: (inputs, target) as from a data loader, where inputs may be a tuple or dict of arguments; inputs alone; a
            dict of keyword arguments; or a data loader or iterator, of which the first batch is taken.
        loss_fn: loss_fn(output, target), loss_fn(output), loss_fn(model, batch), loss_fn(model, inputs, target),
            loss_fn(batch) or loss_fn(), told apart by the number and the names of its parameters: a first parameter
            `model`, `module`, `net` or `network`, or one annotated as a module, takes the model; a single parameter
            `batch` or `data` takes the batch. None if the model returns its loss, or an object or dict with `loss`.

    Returns:
        A `Diagnosis`: `ok`, and findings with kind, file, line and fix.

    Raises:
        TypeError: model is not a module, or loss_fn no function.
        ValueError: the batch does not fit the signature of loss_fn, or is empty.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.first, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
        ...     def forward(self, x):
        ...         return self.last(self.first(x).detach())
        >>> diagnosis = opkit.diagnose(Model(), (torch.ones(8, 3), torch.ones(8, 1)), torch.nn.functional.mse_loss)
        >>> [(finding.kind, finding.names) for finding in diagnosis]
        [('detach', ('first.weight', 'first.bias'))]
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"diagnose: model must be an nn.Module; got {type(model).__name__}. Pass (model, batch, loss_fn)"
        )
    _check_loss(loss_fn)
    with torch.random.fork_rng(devices=[]):
        batch = first_batch(batch)
    if _is_lazy(model):
        model = _with_shapes(model, batch, loss_fn)
    compiles = "torch._dynamo" in sys.modules  # then compiled models run eagerly: a compiled graph has no lines
    with (
        warnings.catch_warnings(),
        torch.compiler.set_stance("force_eager") if compiles else nullcontext(),
        preserved(model, loss_fn),
    ):
        warnings.simplefilter("ignore")
        findings = list[ModelFinding]()
        if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            message = "gradients are disabled where diagnose is called, so a step would learn nothing there"
            fix = "leave no_grad or inference_mode, or call torch.set_grad_enabled(True)"
            findings.append(ModelFinding("no_grad", message, fix))
        findings += unregistered(model) + frozen(model)
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        inference = tuple(name for name, p in parameters.items() if p.is_inference())
        if inference:
            message = "parameters were made under torch.inference_mode, and autograd does not record them"
            fix = "build or load the model outside of inference_mode"
            findings.append(ModelFinding("inference_tensor", message, fix, inference))
        elif parameters:
            findings += _examine(Problem(model, batch, loss_fn, parameters))
        elif not any(True for _ in model.parameters()):
            message = "the model has no parameters, so nothing is learned"
            findings.append(ModelFinding("no_parameters", message, "register layers in __init__"))
    return Diagnosis(tuple(ranked(findings)))


def _check_loss(loss_fn: object) -> None:
    if loss_fn is None or (callable(loss_fn) and not isinstance(loss_fn, type)):
        return
    got = f"the class {loss_fn.__name__}" if isinstance(loss_fn, type) else reprlib.repr(loss_fn)
    raise TypeError(
        f"diagnose: loss_fn must be a function, an instance of a loss module, or None if the model returns its loss; "
        f"got {got}. Pass one such as torch.nn.functional.mse_loss or torch.nn.MSELoss()"
    )


def _is_lazy(model: nn.Module) -> bool:
    return any(nn.parameter.is_lazy(parameter) for parameter in model.parameters())


def _with_shapes(model: nn.Module, batch: object, loss_fn: Loss | None) -> nn.Module:
    """A copy whose lazy parameters have their shapes from a first batch, which they keep for good."""
    model = copy.deepcopy(model)
    with torch.no_grad(), torch.random.fork_rng(devices=[]), suppress(Exception):
        compute_loss(model, fresh(batch), loss_fn)
    if _is_lazy(model):
        raise ValueError("diagnose: lazy layers must have shapes; got some without. Call the model on one batch first")
    return model


def _examine(problem: Problem) -> list[ModelFinding]:
    stored = stored_graphs(problem.model)
    first = problem.step()
    findings = [
        *first.units.findings.values(), *first.losses.findings.values(), *first.intermediates.findings.values(),
        *first.constants.findings(),
    ]  # fmt: skip
    if first.error:
        return [*findings, explain(first)]
    findings += hidden_writes(first) + loss_faults(first) + computed_once(stored, first) + batch_requires_grad(problem)
    if not isinstance(first.loss, Tensor):
        return findings
    if invalid := not_finite(first):
        return findings + invalid
    findings += second_step(problem, first) + broken_links(problem, first) + sizes(first) + symmetric(first)
    if any(finding.severity == "error" for finding in findings):
        return findings + mixed_samples(problem)
    return findings + zero_gradients(problem, first) + mixed_samples(problem) + grows_with_batch(problem)
