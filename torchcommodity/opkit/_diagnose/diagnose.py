"""`diagnose`: examine one forward and one backward pass of a model."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from torchcommodity.opkit._diagnose.findings import Diagnosis, Finding
from torchcommodity.opkit._diagnose.gradients import check_gradients, compute_gradients
from torchcommodity.opkit._diagnose.links import broken_links
from torchcommodity.opkit._diagnose.structure import frozen, never_called, unregistered
from torchcommodity.opkit._diagnose.trace import Trace
from torchcommodity.opkit._diagnose.units import UnitHooks, dead_units

Loss = Callable[..., Any]
Parameters = Mapping[str, Tensor]


def diagnose(model: nn.Module, batch: Any, loss_fn: Loss) -> Diagnosis:
    """Find what keeps a model from learning: broken links to the loss, degenerate gradients, dead units.

    Args:
        model: any module. Its parameters, buffers, gradients and training mode are unchanged afterwards.
        batch: (inputs, target) as from a data loader, where inputs may be a tuple of arguments; or inputs alone.
        loss_fn: loss_fn(output, target), or loss_fn(output) without a target.

    Returns:
        A `Diagnosis`: `ok`, and findings with kind, file, line and fix.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
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
    with _restored(model):
        findings = unregistered(model) + frozen(model)
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if parameters:
            findings += _diagnose_step(model, parameters, batch, loss_fn)
    return Diagnosis(tuple(sorted(findings, key=lambda finding: finding.severity)))


def _diagnose_step(model: nn.Module, parameters: Parameters, batch: Any, loss_fn: Loss) -> list[Finding]:
    trace, names = Trace(parameters.values()), list(parameters)
    with torch.enable_grad(), UnitHooks(model) as units, trace:
        loss = _loss(model, batch, loss_fn)
    findings = units.findings + dead_units(trace)
    if not isinstance(loss, Tensor):
        message = f"the loss is a {type(loss).__name__}, not a Tensor, so it has no gradient"
        location = next((event.location for event in reversed(trace.events) if event.kind == "python"), "")
        fix = "return the Tensor; call .item() only to print it"
        return [*findings, Finding("not_a_tensor", message, fix, (), location)]
    if loss.numel() != 1:
        message = f"the loss has shape {tuple(loss.shape)}, and backward() needs a scalar"
        findings.append(Finding("not_scalar", message, "reduce it: loss.mean()"))
        loss = loss.mean()
    gradients, error = compute_gradients(loss, list(parameters.values()), trace)
    if error:
        return [*findings, error]
    missing = [i for i, g in enumerate(gradients) if g is None]
    unused = [names[i] for i in missing if 1 << i not in trace.last_use]
    findings += broken_links(trace, names, [i for i in missing if names[i] not in unused], trace.bits_of(loss))
    findings += never_called(model, unused)
    findings += check_gradients({n: g for n, g in zip(names, gradients) if g is not None}, parameters, loss, trace)
    return findings + ([] if missing else _check_batch_size(model, batch, loss_fn))


def _loss(model: nn.Module, batch: Any, loss_fn: Loss) -> Any:
    inputs, *target = batch if isinstance(batch, (tuple, list)) else (batch,)
    return loss_fn(model(*inputs) if isinstance(inputs, tuple) else model(inputs), *target)


def _check_batch_size(model: nn.Module, batch: Any, loss_fn: Loss) -> list[Finding]:
    """Repeat the samples: a mean stays the same, a sum doubles."""

    def repeat(x: Any) -> Any:
        return torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() else x

    model.eval()
    with torch.no_grad():
        try:
            once, twice = (_loss(model, b, loss_fn) for b in (batch, tree_map(repeat, batch)))
            ratio = float(twice.mean() / once.mean())
        except Exception:  # a model with a fixed batch size: nothing to compare
            return []
    if not abs(ratio - 2) < 0.02:
        return []
    message = "the loss doubles with the batch size, so the step size depends on it"
    return [Finding("batch_size", message, "take the mean over the batch, not the sum")]


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Restore buffers, training modes and the random state on exit; gradients are never written."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    modes = {name: module.training for name, module in model.named_modules()}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for name, buffer in model.named_buffers():
                buffer.data.copy_(buffers[name])
            for name, module in model.named_modules():
                module.training = modes[name]
