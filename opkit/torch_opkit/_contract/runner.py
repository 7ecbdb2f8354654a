"""`check`: run the contract on one operator."""

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from torch_opkit import _torch_private as private
from torch_opkit._cases import Cases, Sample
from torch_opkit._contract.case import Case
from torch_opkit._contract.checks import CHECKS, Check, run_check
from torch_opkit._contract.declaration import Declaration, Samples, Time, vary_settings
from torch_opkit._contract.foreign import ForeignOp
from torch_opkit._contract.report import Report, Result
from torch_opkit._contract.signature import schema_parameters
from torch_opkit._contract.source import locate
from torch_opkit._contract.support import adapt_check
from torch_opkit._contract.wrap import wrap_foreign
from torch_opkit._contract.writes import as_functional
from torch_opkit._op import Op

DEFAULTS = {"Tensor": None, "int": 3, "float": 0.5, "bool": False}  # None: a random panel


def check(
    op: object,
    *,
    samples: Samples | None = None,
    time: Time = "guess",
    causal: bool | Callable[..., bool] | None = None,
    warmup: int | Callable[..., int | tuple[int, ...]] | None = None,
    reference: Callable[..., Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    bad_inputs: Sequence[Any] = (),
    cases: Cases | None = None,
    only: str | Sequence[str] | None = None,
    compiled: bool = True,
) -> Report:
    """Check that an operator meets the contract.

    An `Op` record says what it is. Any other operator says it here: what is not stated is guessed or measured if
    possible, and the report tells. A property that was not stated is never a fault.

    Args:
        op: an `Op` record; or any other operator: `torch.library.custom_op`, `triton_op`, `torch.ops`, an
            `autograd.Function`, a function, an `nn.Module`.
        samples: a list of `Sample`, tuples of arguments or single Tensors; or a function that returns one. Tensors are
            float64 or integers, and small. Default: those of the record, or guessed from the signature.
        time: negative axis of rows in time, of inputs and outputs; a pair (input axis, output axis); None if no axis
            is time. Default: of the record, or measured.
        causal: whether row t depends on rows up to t only; or a function of the settings that it names.
        warmup: number of first rows that are NaN; or a function of the settings that it names.
        reference: the definition, with the same parameters: any function or module that returns the right values.
        settings: values of parameters that are not Tensors, {"window": [3, 5]}: the first is used in every sample, the
            others in one more sample each.
        bad_inputs: calls that must raise: `Bad`, or a `Sample` or tuple of arguments, which must raise a ValueError,
            TypeError or RuntimeError.
        cases: `Cases` in place of samples, with published numbers and an oracle; default: those of the record.
        only: names of checks; checks that they depend on run too.
        compiled: include the checks that compile (Inductor, AOTInductor, ONNX), which take seconds each.

    Returns:
        A `Report` with `ok`, `failures`, `causes` and `results`. It prints what failed, why and how to fix it.

    Raises:
        ValueError: `only` names an unknown check, a stated property does not fit, or no guessed sample works.
        TypeError: `op` is not an operator, or its outputs hold no Tensors.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> def smooth(x, decay=0.5):
        ...     return torch.cumsum(decay * x, -2)
        >>> report = opkit.check(smooth, time=-2, causal=True, warmup=0, compiled=False)
        >>> report.ok, report["causal"].status
        (True, 'pass')
    """
    declaration = Declaration(samples, time, causal, warmup, reference, settings or {}, bad_inputs, cases)
    checks = _select(only, compiled)
    if isinstance(op, Op):
        prepared = _record_cases(op, declaration)
    else:
        op, checks = wrap_foreign(op, declaration), [adapt_check(check) for check in checks]
        prepared = build_cases(op, op.data)
    if only is None:
        _load_lazy_modules(op)
    results: dict[str, Result] = {}
    for check in checks:
        failed = [n if results[n].status == "fail" else results[n].blocked_by for n in check.depends_on]
        if cause := next(filter(None, failed), ""):  # a check that it depends on failed, or was itself blocked
            reason = f"not run: it depends on {cause}, which failed"
            results[check.name] = Result(check.name, "skip", 0.0, cause=reason, blocked_by=cause)
        else:
            results[check.name] = run_check(check, prepared)
    guesses, notes = ((), ()) if isinstance(op, Op) else (tuple(op.guesses.values()), op.notes)
    return Report(op.qualified_name, tuple(results.values()), locate(op), guesses, notes)


def _load_lazy_modules(op: Op | ForeignOp) -> None:
    """Import what PyTorch imports on first use, a second or two, so that no check is charged for it."""
    names = ["torch._dynamo", "torch._decomp.decompositions_for_jvp"]
    if isinstance(op, Op) or not op.plain:
        names += ["torch.testing._internal.optests", "torch._inductor.compile_fx"]  # opcheck
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about itself
        for name in names:
            importlib.import_module(name)


def _record_cases(op: Op, declaration: Declaration) -> tuple[Case, ...]:
    """The cases of a record, with the samples, settings and bad inputs that were passed."""
    if stated := declaration.stated:
        raise ValueError(
            f"check: {stated[0]} is stated by the record {op.name}; got {stated[0]}= too: change the record"
        )
    cases = declaration.cases or (op.cases() if op.cases else _guess_cases(op))
    parameters = schema_parameters(op.overload._schema)
    samples = declaration.make_samples(parameters) if declaration.samples is not None else cases.samples
    if declaration.settings and declaration.samples is None:
        samples = vary_settings(samples, declaration.values_of_settings(), parameters)
    bad = (*cases.bad, *declaration.make_bad_inputs(parameters))
    return build_cases(op, replace(cases, samples=samples, bad=bad))


def build_cases(op: Op | ForeignOp, cases: Cases | None = None) -> tuple[Case, ...]:
    """One case per sample: of `cases`, of the record, or guessed."""
    cases = as_functional(op, cases or (op.cases() if op.cases else _guess_cases(op)))
    return tuple(Case(op, cases, sample) for sample in cases.samples)


def _guess_cases(op: Op) -> Cases:
    """Cases for a record without any: panels of positive numbers for tensors, small numbers for settings."""
    generator, schema = torch.Generator().manual_seed(0), op.overload._schema.arguments
    defaults = [(a.name, private.is_tensor_like_type(a.type), _default(a)) for a in schema]  # Dynamo traces `call`
    count = sum(is_tensor and not a.has_default_value() for a, (_, is_tensor, _) in zip(schema, defaults))
    tensors = [0.5 + torch.rand(2, 11, 3, dtype=torch.double, generator=generator) for _ in range(count)]

    def call(*tensors: object, **settings: object) -> Any:
        """Pass each setting by name, the next Tensor, or the default."""
        remaining, arguments = iter(tensors), []
        for name, is_tensor, default in defaults:
            value = next(remaining, default) if is_tensor and name not in settings else default
            arguments.append(settings.get(name, value))
        return op(*arguments)

    return Cases(function=call, samples=(Sample(*tensors),))


def _default(argument: Any) -> object:
    """The default of an argument, or a guess; None for a Tensor."""
    return argument.default_value if argument.has_default_value() else DEFAULTS.get(str(argument.type))


def _select(only: str | Sequence[str] | None, compiled: bool) -> list[Check]:
    names = set(CHECKS) if only is None else {only} if isinstance(only, str) else set(only)
    if unknown := names - set(CHECKS):
        raise ValueError(f"check: only must name checks of the contract, {', '.join(CHECKS)}; got {sorted(unknown)}")
    if only is None:
        return [check for check in CHECKS.values() if compiled or not check.compiled]
    while more := {name for check in names for name in CHECKS[check].depends_on} - names:
        names |= more
    return [check for check in CHECKS.values() if check.name in names]
