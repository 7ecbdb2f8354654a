"""An operator without a record, with the attributes of `Op` that checks read: stated, measured or guessed."""

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit import _torch_private as private
from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._contract.case import Case, Redirect, SkipCheck, as_tuple
from torchcommodity.opkit._contract.declaration import Declaration, vary_settings
from torchcommodity.opkit._contract.guess_samples import NoSample, guess_sample
from torchcommodity.opkit._contract.guess_time import Run, batches_are_free, guess_time_axis, looks_ahead, runner
from torchcommodity.opkit._contract.invocation import Invocation, UnsupportedOutput, call_twice, flatten_outputs
from torchcommodity.opkit._contract.make import Make
from torchcommodity.opkit._contract.signature import arrange
from torchcommodity.opkit._contract.support import find_cause
from torchcommodity.opkit._contract.widen import widen_samples
from torchcommodity.opkit._contract.writes import as_function


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
        args, kwargs = arrange(self.make.parameters, Sample(*_inputs(self, sample), **sample.settings))
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
            return self._redirected_arguments(case)
        args, keywords = arrange(self.make.parameters, case.sample)
        positional: tuple[Any, ...] = private.fill_defaults(self.overload._schema, tuple(args), keywords)[0]
        return positional

    def keywords(self, case: Case) -> dict[str, Any]:
        """Keyword-only arguments that reach the dispatcher."""
        if self.plain or self.declaration.cases is not None:
            return {}
        return arrange(self.make.parameters, case.sample)[1]

    def _redirected_arguments(self, case: Case) -> tuple[Any, ...]:
        with torch.no_grad(), Redirect(self.overload, self.overload) as redirect:
            case.call()
        if not redirect.calls:
            reason = "the dispatcher replaces it by its parts" if self.make.composite else "the function never calls it"
            raise SkipCheck(f"its arguments are not known: {reason}; pass samples instead of cases")
        arguments: tuple[Any, ...] = redirect.calls[0]
        return arguments

    @cached_property
    def backward(self) -> bool:
        """Whether it is differentiable: an output requires a gradient, and has an autograd formula."""
        sample = self.data.samples[0]
        leaves: list[Any] = [_as_leaf(x) for x in sample.tensors]
        outputs = as_tuple(self.data.function(*leaves, **sample.settings))
        sums = [y.sum() for y in outputs if isinstance(y, Tensor) and y.requires_grad and y.is_floating_point()]
        try:
            torch.autograd.grad(sums, [x for x in leaves if _is_floating(x)], allow_unused=True)
        except RuntimeError as error:
            return "no autograd formula was registered" not in str(error)  # a crash is a finding of `gradient_layout`
        return bool(sums)


def call_by_name(name: str, function: Callable[..., Any], sample: Sample) -> Any:
    """Call a function of settings with those that its parameters name."""
    names = list(inspect.signature(function).parameters)
    if missing := [key for key in names if key not in sample.settings]:
        known = ", ".join(sample.settings) or "none"
        raise ValueError(f"check: {name} must name settings of the samples ({known}); got {missing[0]!r}")
    return function(**{key: sample.settings[key] for key in names})


def wrap_foreign(operator: Any, declaration: Declaration) -> ForeignOp:
    """Wrap an operator of any make: samples, time axis, causality and batching as stated, else guessed or measured.

    Raises:
        TypeError: it is not an operator, or its outputs hold no Tensors.
        ValueError: a stated property does not fit, or no guessed sample works.
    """
    make = Make(operator)
    target, state = _target(make)
    invocation = Invocation(target, make.parameters, state)
    guesses: dict[str, str] = {}
    data = _make_cases(make, declaration, invocation, guesses)
    runs = _try_first_sample(make, data)
    op = ForeignOp(make, declaration, invocation, data, declaration.axes, bool(declaration.causal), guesses=guesses)
    return _measure(op) if runs else op


def _target(make: Make) -> tuple[Any, dict[str, Tensor]]:
    """What is called; of a module, a copy in float64 and its parameters."""
    if not isinstance(make.operator, torch.nn.Module):
        return as_function(make), {}
    module = copy.deepcopy(make.operator).double()
    return module, {name: p.detach() for name, p in module.named_parameters()}


def _make_cases(make: Make, declaration: Declaration, invocation: Invocation, guesses: dict[str, str]) -> Cases:
    bad = declaration.make_bad_inputs(make.parameters)
    if (cases := declaration.cases) is not None:
        samples = vary_settings(cases.samples, declaration.values_of_settings(), make.parameters)

        def function(*tensors: Any, **settings: Any) -> Any:
            return flatten_outputs(cases.function(*tensors, **settings))

        return replace(cases, function=function, samples=samples, bad=(*cases.bad, *bad))
    if declaration.samples is not None:
        stated = declaration.make_samples(make.parameters)
        samples = widen_samples(stated, lambda *x, **settings: invocation(*x, *invocation.state.values(), **settings))
    else:
        samples = _guess_samples(make, declaration, invocation, guesses)
    with_state = tuple(Sample(*s.tensors, *invocation.state.values(), **s.settings) for s in samples)
    return Cases(function=invocation, samples=with_state, bad=bad)


def _guess_samples(
    make: Make, declaration: Declaration, invocation: Invocation, guesses: dict[str, str]
) -> tuple[Sample, ...]:
    values = declaration.values_of_settings()
    parameters = [
        replace(p, default=values[p.name][0], kind="other") if p.name in values else p for p in make.parameters
    ]
    try:
        sample = guess_sample(invocation, parameters, tuple(invocation.state.values()))
    except NoSample as error:
        raise ValueError(
            f"check: no guessed sample works for {make.name} ({error}); pass samples, such as {_example(make)}"
        ) from error
    guesses["samples"] = f"samples ({sample})"
    return vary_settings([sample], values, make.parameters)


def _example(make: Make) -> str:
    """A call of `check` with samples that have the form of the operator's arguments."""
    forms = {"int": "3", "float": "0.5", "bool": "False", "tensors": "[torch.rand(5, 3).double()]"}
    tensor = "torch.rand(5, 3).double()"
    required = [p for p in make.parameters if p.required or p.variadic]
    values = [forms.get(p.kind, tensor if p.kind in ("tensor", "unknown") else p.name) for p in required] or [tensor]
    arguments = ", ".join(values) + ("," if len(values) == 1 else "")
    return f"opkit.check({make.name.split('::')[-1]}, samples=[({arguments})])"


def _try_first_sample(make: Make, data: Cases) -> bool:
    """Run the operator once, so that a sample that does not fit is reported as such; False if it has a known fault."""
    sample = data.samples[0]
    tensors = [x.clone() if isinstance(x, Tensor) else x for x in sample.tensors]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            outputs = data.function(*tensors, **sample.settings)
    except UnsupportedOutput:
        raise
    except Exception as error:
        if find_cause(error):
            return False  # PyTorch itself names a fault of the operator, which the first check reports
        raise ValueError(
            f"check: {make.name} does not run on the sample {sample}: {type(error).__name__}: {error}; "
            f"pass samples that it takes, such as {_example(make)}"
        ) from error
    if not outputs:
        raise UnsupportedOutput("no Tensor")
    return True


def _measure(op: ForeignOp) -> ForeignOp:
    """The operator with its time axis, causality and batching, as stated or as the first sample shows them."""
    sample = op.data.samples[0]
    run, inputs = runner(op.data.function, sample), len(sample.tensors) - len(op.state_names)
    time, guesses = op.declaration.axes, dict(op.guesses)
    if op.declaration.time == "guess":
        axis = guess_time_axis(run, sample.tensors, inputs)
        time = None if axis is None else (axis, axis)
        if time:
            guesses["time"] = f"time={axis} (rows remember earlier rows of this axis, and know no later ones)"
    causal = op.declaration.causal
    timed: tuple[int, ...] = ()
    if time:
        timed = _timed_outputs(op, run(sample.tensors), sample, time)
        if causal is None:
            causal = "time" in guesses or not looks_ahead(
                lambda x: [run(x)[i] for i in timed], sample.tensors, time, inputs
            )
            guesses["causal"] = f"causal={causal} (measured)"
    free = not op.state_names and batches_are_free(run, sample.tensors)
    return replace(
        op,
        time=time,
        causal=causal if callable(causal) else bool(causal),
        vmap="batch" if free else "loop",
        timed_outputs=timed,
        guesses=guesses,
    )


def _only(run: Run, indices: Sequence[int]) -> Run:
    def select(tensors: Sequence[Any]) -> Sequence[Tensor]:
        outputs = run(tensors)
        return [outputs[i] for i in indices]

    return select


def _timed_outputs(op: ForeignOp, outputs: Sequence[Tensor], sample: Sample, time: tuple[int, int]) -> tuple[int, ...]:
    """Indices of the outputs with as many rows as the first input.

    Raises:
        ValueError: the first input has no such axis, or no output has as many rows.
    """
    first = sample.tensors[0] if sample.tensors else None
    stated = f"check: time={op.declaration.time!r}"
    if not isinstance(first, Tensor) or first.dim() < -time[0]:
        raise ValueError(
            f"{stated} must be an axis of the first input; got {sample}: pass another axis, or None without a time axis"
        )
    rows = first.shape[time[0]]
    timed = tuple(i for i, y in enumerate(outputs) if y.dim() >= -time[1] and y.shape[time[1]] == rows)
    if not timed:
        shapes = ", ".join(str(tuple(y.shape)) for y in outputs)
        raise ValueError(
            f"{stated} must be an axis of an output with {rows} rows, as the input has; got {shapes}: "
            "pass time=(input axis, output axis), or None without a time axis"
        )
    return timed


def _inputs(op: ForeignOp, sample: Sample) -> tuple[Any, ...]:
    """The tensors of a sample without the parameters of a module."""
    return sample.tensors[: len(sample.tensors) - len(op.state_names)]


def _as_leaf(x: Any) -> Any:
    return x.detach().clone().requires_grad_() if _is_floating(x) else x


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()
