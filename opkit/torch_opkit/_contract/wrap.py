"""A foreign operator from what `check` receives: its target, its samples, and what is measured of it."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_opkit._cases import Cases, Sample
from torch_opkit._contract.declaration import Declaration, vary_settings
from torch_opkit._contract.foreign import ForeignOp
from torch_opkit._contract.guess_samples import NoSample, guess_sample
from torch_opkit._contract.invocation import Invocation, UnsupportedOutput, flatten_outputs, run_once
from torch_opkit._contract.make import Make
from torch_opkit._contract.measure import measure
from torch_opkit._contract.support import find_cause
from torch_opkit._contract.writes import as_function

WIDER = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64)
WIDER[torch.complex64] = torch.complex128


def wrap_foreign(operator: object, declaration: Declaration) -> ForeignOp:
    """Wrap an operator of any make: samples, time axis, causality and batching as stated, else guessed or measured.

    Raises:
        TypeError: it is not an operator, or its outputs hold no Tensors.
        ValueError: a stated property does not fit, or no guessed sample works.
    """
    make, declaration = Make(operator), declaration.complete(operator)
    if isinstance(make.operator, torch.nn.Module):  # a copy in float64, and its parameters
        module = copy.deepcopy(make.operator).double()
        state = {name: p.detach() for name, p in module.named_parameters()}
        invocation = Invocation(module, make.parameters, state)
    else:
        invocation = Invocation(as_function(make), make.parameters, {})
    guesses: dict[str, str] = {}
    data = _make_cases(make, declaration, invocation, guesses)
    runs = _try_first_sample(make, data)
    op = ForeignOp(make, declaration, invocation, data, declaration.axes, bool(declaration.causal), guesses=guesses)
    return measure(op) if runs else op


def _make_cases(make: Make, declaration: Declaration, invocation: Invocation, guesses: dict[str, str]) -> Cases:
    bad = declaration.make_bad_inputs(make.parameters)
    if (cases := declaration.cases) is not None:
        samples = vary_settings(cases.samples, declaration.values_of_settings(), make.parameters)

        def function(*tensors: object, **settings: object) -> Any:
            return flatten_outputs(cases.function(*tensors, **settings))

        return replace(cases, function=function, samples=samples, bad=(*cases.bad, *bad))
    if declaration.samples is not None:
        stated = declaration.make_samples(make.parameters)
        samples = _widen_samples(stated, lambda *x, **settings: invocation(*x, *invocation.state.values(), **settings))
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
    try:
        outputs = run_once(data.function, sample)
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


def _widen_samples(samples: Sequence[Sample], function: Callable[..., Any]) -> tuple[Sample, ...]:
    """The samples in float64 and complex128; as they are, if the operator runs on the first one only so.

    Users have them in float32, and finite differences need float64.
    """
    shared: dict[int, Tensor] = {}  # samples that differ in a setting only have the same tensors, and still do
    wide = []
    for sample in samples:
        tensors = list(sample.tensors)
        for i, x in enumerate(tensors):
            if isinstance(x, Tensor) and x.dtype in WIDER:
                tensors[i] = shared.setdefault(id(x), x.detach().to(WIDER[x.dtype]))
        wide.append(Sample(*tensors, **sample.settings))
    is_narrow = any(isinstance(x, Tensor) and x.dtype in WIDER for x in samples[0].tensors)
    if is_narrow and not _runs(function, wide[0]) and _runs(function, samples[0]):
        return tuple(samples)
    return tuple(wide)


def _runs(function: Callable[..., Any], sample: Sample) -> bool:
    try:
        run_once(function, sample)
    except Exception:
        return False
    return True
