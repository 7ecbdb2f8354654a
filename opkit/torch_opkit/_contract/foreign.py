"""An operator without a record, with the attributes of `Op` that checks read: stated, measured or guessed."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from torch_opkit import _torch_private as private
from torch_opkit._cases import Cases, Sample
from torch_opkit._contract.case import Case, Redirect, SkipCheck, as_leaf, as_tuple
from torch_opkit._contract.declaration import Declaration
from torch_opkit._contract.invocation import Invocation, call_twice
from torch_opkit._contract.make import Make
from torch_opkit._contract.signature import arrange
from torch_opkit._op import Op, is_floating


@dataclass(frozen=True, eq=False)
class ForeignOp:
    """An operator without a record. `guesses` says in words which properties were not stated."""

    make: Make
    declaration: Declaration
    invocation: Invocation
    data: Cases
    time: tuple[int, int] | None = None
    causal: bool | Callable[..., bool] = False
    vmap: str = "loop"
    timed_outputs: tuple[int, ...] = ()  # indices of the outputs with a time axis
    guesses: dict[str, str] = field(default_factory=dict)
    jvp = decomposition = None
    native = False

    def cases(self) -> Cases:
        return self.data

    @property
    def masks_nan(self) -> bool:
        """Whether a NaN output takes no part in the backward pass, as in every `Op` record."""
        return self.declaration.masks_nan

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the report should know: how a module was run."""
        module = self.invocation.target
        if not isinstance(module, torch.nn.Module):
            return ()
        mode = "training" if module.training else "evaluation"
        notes = [f"module in {mode} mode, in float64; its parameters are differentiated too"]
        if self.changed_buffers:
            names = ", ".join(self.changed_buffers)
            notes.append(f"each call changes buffers ({names}): every call here starts from the same ones")
        return tuple(notes)

    @cached_property
    def changed_buffers(self) -> tuple[str, ...]:
        """Names of the buffers that a call of a module changes."""
        return self._state_after_calls[0]

    @cached_property
    def carries_state(self) -> bool:
        """Whether the buffers that a call of a module changes change the result of the next call."""
        return self._state_after_calls[1]

    @cached_property
    def _state_after_calls(self) -> tuple[tuple[str, ...], bool]:
        module, sample = self.invocation.target, self.data.samples[0]
        if not isinstance(module, torch.nn.Module) or self.declaration.cases is not None:
            return (), False
        inputs = sample.tensors[: self.num_inputs(sample)]
        args, kwargs = arrange(self.make.parameters, Sample(*inputs, **sample.settings))
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            try:
                return call_twice(module, args, kwargs)
            except Exception:  # a fault that the checks report
                return (), False

    @property
    def qualified_name(self) -> str:
        return self.make.name

    @property
    def name(self) -> str:
        return self.qualified_name.split("::")[-1]

    @property
    def overload(self) -> Any:
        if self.make.overload is None:
            raise SkipCheck("not registered with PyTorch's dispatcher: it has no schema")
        return self.make.overload

    @property
    def plain(self) -> bool:
        """Whether it is not registered with PyTorch's dispatcher."""
        return self.make.overload is None

    @property
    def returns_new_memory(self) -> bool:
        """Whether its outputs may not be views: the schema of an operator says so; functions and modules are free."""
        if self.plain or self.make.composite:
            return False
        return all(result.alias_info is None for result in self.overload._schema.returns)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of a module's parameters, which are the last tensors of each sample."""
        return tuple(self.invocation.state)

    def num_inputs(self, sample: Sample) -> int:
        """Number of the sample's tensors that are arguments; the parameters of a module follow them."""
        return len(sample.tensors) - len(self.state_names)

    @cached_property
    def reference(self) -> Callable[..., Any] | None:
        """The stated reference, called as the operator is."""
        target = self.declaration.reference
        if target is None:
            return self.data.oracle
        if isinstance(target, torch.nn.Module):
            target = copy.deepcopy(target).double()
            same_state = dict(target.named_parameters()).keys() == self.invocation.state.keys()
            return Invocation(target, self.make.parameters, self.invocation.state if same_state else {})
        if not self.state_names:
            return replace(self.invocation, target=target)
        return lambda *tensors, **settings: replace(self.invocation, target=target, state={})(
            *tensors[: len(tensors) - len(self.state_names)], **settings
        )

    def warmup_rows(self, sample: Sample) -> int | tuple[int, ...]:
        warmup = self.declaration.warmup
        if warmup is None:
            raise SkipCheck("no warm-up is stated: pass warmup=0, or the number of rows")
        return warmup if isinstance(warmup, int) else call_by_name("warmup", warmup, sample)

    def is_causal(self, sample: Sample) -> bool:
        return bool(call_by_name("causal", self.causal, sample) if callable(self.causal) else self.causal)

    def arguments(self, case: Case) -> tuple[Any, ...]:
        """Positional arguments that reach the dispatcher; for an operator without a schema, the tensors."""
        if self.plain:
            return case.tensors
        if self.declaration.cases is not None:
            with torch.no_grad(), Redirect(self.overload, self.overload) as redirect:
                case.call()
            if not redirect.calls:
                parts = "the dispatcher replaces it by its parts"
                reason = parts if self.make.composite else "the function never calls it"
                raise SkipCheck(f"its arguments are not known: {reason}; pass samples instead of cases")
            calls: list[tuple[Any, ...]] = redirect.calls
            return calls[0]
        args, keywords = arrange(self.make.parameters, case.sample)
        positional: tuple[Any, ...] = private.fill_defaults(self.overload._schema, tuple(args), keywords)[0]
        return positional

    def keywords(self, case: Case) -> dict[str, Any]:
        """Keyword-only arguments that reach the dispatcher."""
        if self.plain or self.declaration.cases is not None:
            return {}
        return arrange(self.make.parameters, case.sample)[1]

    @cached_property
    def backward(self) -> bool:
        """Whether it is differentiable: an output requires a gradient, and has an autograd formula."""
        sample = self.data.samples[0]
        leaves: list[Any] = [as_leaf(x) for x in sample.tensors]
        outputs = as_tuple(self.data.function(*leaves, **sample.settings))
        sums = [y.sum() for y in outputs if is_floating(y) and y.requires_grad]
        try:
            torch.autograd.grad(sums, [x for x in leaves if is_floating(x)], allow_unused=True)
        except RuntimeError as error:
            return "no autograd formula was registered" not in str(error)  # a crash is a finding of `gradient_layout`
        return bool(sums)


def masks_nan(op: Op | ForeignOp) -> bool:
    """Whether a NaN output takes no part in the backward pass: a rule of records, which other operators may state."""
    return isinstance(op, Op) or bool(op.masks_nan)


def call_by_name(name: str, function: Callable[..., Any], sample: Sample) -> Any:
    """Call a function of settings with those that its parameters name."""
    parameters = inspect.signature(function).parameters
    names = [key for key, p in parameters.items() if key in sample.settings or p.default is p.empty]
    if missing := [key for key in names if key not in sample.settings]:
        known = ", ".join(sample.settings) or "none"
        raise ValueError(f"check: {name} must name settings of the samples ({known}); got {missing[0]!r}")
    return function(**{key: sample.settings[key] for key in names})
