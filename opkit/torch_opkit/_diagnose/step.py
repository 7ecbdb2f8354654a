"""One training step of a model: forward, loss, backward, all of it observed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from torch_opkit._diagnose.backward import Flow, IntermediateObserver, backward, graph_nodes
from torch_opkit._diagnose.call import BatchMismatchError, compute_loss, fresh
from torch_opkit._diagnose.finite import FiniteObserver
from torch_opkit._diagnose.layer_hooks import OutputHooks, UnitObserver
from torch_opkit._diagnose.losses import LossObserver
from torch_opkit._diagnose.structure import ConstantObserver
from torch_opkit._diagnose.trace import Trace
from torch_opkit._diagnose.values import dense, is_finite, is_zero, named_tensors, tensors_in

RELATIVE_STEP, MIN_STEP = 0.01, 1e-3
NOISE = (0.1, 1.0, 10.0)  # a rounded or sorted value changes with large noise only


@dataclass
class TrainingStep:
    """What one step has shown. `error` is an exception of the user's code, or of the backward pass."""

    trace: Trace
    finite: FiniteObserver
    losses: LossObserver
    units: UnitObserver
    outputs: OutputHooks
    constants: ConstantObserver
    intermediates: IntermediateObserver
    loss: Any = None
    flow: Flow = field(default_factory=Flow)
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    error: Exception | None = None
    in_backward: bool = False
    random: bool = False

    @property
    def loss_bits(self) -> int:
        return self.trace.bits_of(self.loss)

    @cached_property
    def zero(self) -> list[str]:
        """Parameters whose gradients are all zero."""
        return [name for name, g in self.gradients.items() if g is not None and g.numel() and is_zero(g)]

    @cached_property
    def not_finite(self) -> list[str]:
        return [name for name, g in self.gradients.items() if g is not None and not is_finite(g)]


@dataclass
class Problem:
    """A model, a batch and a loss function; `parameters` are those that require a gradient."""

    model: nn.Module
    batch: Any
    loss_fn: Callable[..., Any] | None
    parameters: Mapping[str, Tensor]

    def step(self, scale: float = 1.0, *, keep_gradients: bool = False) -> TrainingStep:
        """One step of training, without the update."""
        batch = fresh(self.batch)
        inputs = {"batch": dict(named_tensors(batch, "batch")), "parameter": dict(self.parameters)}
        finite, losses, units = FiniteObserver(inputs), LossObserver(), UnitObserver(self.model)
        constants, intermediates = ConstantObserver(self.model), IntermediateObserver()
        observers = (finite, losses, units, constants, intermediates)
        trace = Trace(self.parameters.values(), inputs["batch"].values(), observers)
        losses.trace = intermediates.trace = trace
        outputs = OutputHooks(self.model, trace)
        step = TrainingStep(trace, finite, losses, units, outputs, constants, intermediates, parameters=self.parameters)
        state = torch.get_rng_state()
        for parameter in self.parameters.values():
            parameter.grad = parameter.grad.clone() if keep_gradients and parameter.grad is not None else None
        try:
            with torch.inference_mode(False), torch.enable_grad(), step.units, step.outputs, step.trace:
                step.loss = compute_loss(self.model, batch, self.loss_fn)
            step.in_backward = True
            self._backward(step, scale)
        except BatchMismatchError:
            raise
        except Exception as error:  # whatever the user's code raises is a finding
            step.error = error
        step.random = not torch.equal(state, torch.get_rng_state())
        step.gradients = {name: parameter.grad for name, parameter in self.parameters.items()}
        return step

    def loss_depends_on(self, name: str, values: list[float] | None) -> bool:
        """Whether noise on a parameter changes the loss; `values` are those of the loss without noise."""
        parameter, depends = self.parameters[name], False
        old = parameter.detach().clone()
        for scale in NOISE:
            noise = scale * old.abs().mean().clamp(min=0.1) * torch.randn_like(old)
            parameter.data.copy_(old + noise)
            if depends := self.loss_values() != values:
                break
        parameter.data.copy_(old)
        return depends

    def loss_values(self) -> list[float] | None:
        """The loss as numbers, of the same random state each time; None if the model refuses its parameters."""
        torch.manual_seed(0)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                loss = compute_loss(self.model, fresh(self.batch), self.loss_fn)
        except Exception:  # such as a window length that no longer fits
            return None
        if isinstance(loss, int | float):
            return [float(loss)]
        return [value for x in tensors_in(loss) for value in x.detach().flatten().tolist()]

    def descend(self, gradients: Mapping[str, Tensor | None]) -> None:
        """A small step along the gradients, the same relative size for every parameter; autograd does not see it."""
        for name, gradient in gradients.items():
            if gradient is not None and is_finite(gradient) and not is_zero(gradient):
                data = self.parameters[name].data
                size = max(RELATIVE_STEP * data.abs().max().item(), MIN_STEP)
                data.sub_(size / dense(gradient).abs().max().item() * gradient.to_dense().to(data.dtype))

    def _backward(self, step: TrainingStep, scale: float) -> None:
        """Run `backward`, unless the loss function has done it and the graph is no more."""
        loss = scalar_loss(step.loss)
        called = any(parameter.grad is not None for parameter in self.parameters.values())
        if loss is None or not loss.requires_grad:
            return
        step.flow = Flow(graph_nodes(loss, step.trace.nodes))
        try:
            backward(loss, step.flow, scale)
        except RuntimeError as error:
            if not (called and "a second time" in str(error)):
                raise


def scalar_loss(loss: object) -> Tensor | None:
    """The loss that backward() is called on: the mean, where the loss is not a scalar."""
    if not isinstance(loss, Tensor):
        return None
    loss = loss.real if loss.is_complex() else loss
    return loss if loss.numel() == 1 else loss.mean() if loss.is_floating_point() and loss.numel() else None
