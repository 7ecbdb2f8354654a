"""Why does my model not learn? One forward and one backward pass, looked at closely."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from torchcommodity.opkit._diagnose.findings import Diagnosis, Finding
from torchcommodity.opkit._diagnose.gradients import gradients_of, judged
from torchcommodity.opkit._diagnose.links import broken_links
from torchcommodity.opkit._diagnose.structure import frozen, never_called, structure
from torchcommodity.opkit._diagnose.trace import Trace
from torchcommodity.opkit._diagnose.units import Units, dead_by_function

Loss = Callable[..., Any]
Parameters = Mapping[str, Tensor]


def diagnose(model: nn.Module, batch: Any, loss_fn: Loss) -> Diagnosis:
    """Look for what keeps `model` from learning: broken links to the loss, useless gradients, dead units.

    Args:
        model: any module; its parameters, buffers, gradients and mode are afterwards what they were.
        batch: (inputs, target) as a loader gives them, where inputs may be a tuple of arguments; or inputs alone.
        loss_fn: loss_fn(output, target), or loss_fn(output) where there is no target.

    Returns:
        a `Diagnosis`: `healthy`, and findings with kind, file and line, and what to do.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.first, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
        ...     def forward(self, x):
        ...         return self.last(self.first(x).detach())
        >>> found = opkit.diagnose(Model(), (torch.ones(8, 3), torch.ones(8, 1)), torch.nn.functional.mse_loss)
        >>> [(finding.kind, finding.what) for finding in found]
        [('detach', ('first.weight', 'first.bias'))]
    """
    with _as_it_was(model):
        findings = structure(model) + frozen(model)
        parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if parameters:
            findings += _one_step(model, parameters, batch, loss_fn)
    return Diagnosis(tuple(sorted(findings, key=lambda finding: finding.severity)))


def _one_step(model: nn.Module, parameters: Parameters, batch: Any, loss_fn: Loss) -> list[Finding]:
    trace, names = Trace(parameters.values()), list(parameters)
    with torch.enable_grad(), Units(model) as units, trace:
        loss = _loss(model, batch, loss_fn)
    findings = units.findings + dead_by_function(trace)
    if not isinstance(loss, Tensor):
        message = f"the loss is a {type(loss).__name__}, no Tensor: it has no gradient"
        where = next((event.where for event in reversed(trace.events) if event.kind == "python"), "")
        return [*findings, Finding("not_a_tensor", message, "return the Tensor; take .item() only to print", (), where)]
    if loss.numel() != 1:
        message = f"the loss is {tuple(loss.shape)}, no scalar: backward() needs one"
        findings.append(Finding("not_scalar", message, "reduce it: loss.mean()"))
        loss = loss.mean()
    gradients, trouble = gradients_of(loss, list(parameters.values()), trace)
    if trouble:
        return [*findings, trouble]
    missing = [i for i, g in enumerate(gradients) if g is None]
    unused = [names[i] for i in missing if 1 << i not in trace.used]
    findings += broken_links(trace, names, [i for i in missing if names[i] not in unused], trace.mark_of(loss))
    findings += never_called(model, unused)
    findings += judged({n: g for n, g in zip(names, gradients) if g is not None}, parameters, loss, trace)
    return findings + ([] if missing else _by_batch(model, batch, loss_fn))


def _loss(model: nn.Module, batch: Any, loss_fn: Loss) -> Any:
    inputs, *target = batch if isinstance(batch, (tuple, list)) else (batch,)
    return loss_fn(model(*inputs) if isinstance(inputs, tuple) else model(inputs), *target)


def _by_batch(model: nn.Module, batch: Any, loss_fn: Loss) -> list[Finding]:
    """The same samples twice over: a mean stays, a sum doubles."""

    def doubled(x: Any) -> Any:
        return torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() else x

    model.eval()
    with torch.no_grad():
        try:
            once, twice = (_loss(model, b, loss_fn) for b in (batch, tree_map(doubled, batch)))
            ratio = float(twice.mean() / once.mean())
        except Exception:  # a model of a fixed batch: there is nothing to compare
            return []
    if not abs(ratio - 2) < 0.02:
        return []
    message = "twice the batch gives twice the loss: steps and learning rate depend on the batch size"
    return [Finding("batch_size", message, "take the mean over the batch, no sum")]


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Buffers, modes and the random state are put back; gradients are never written."""
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
