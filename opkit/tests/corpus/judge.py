"""Judge a check, and torch's own tests, on an entry of the corpus."""

import inspect
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

import torch_opkit as opkit
from corpus.entries import Entry

COMPILED = {"graph_break", "recompiles", "compile_wrong", "export", "onnx"}
Verdict = Literal["right", "wrong", "missed", "clean", "alarm"]


@dataclass(frozen=True)
class Judgement:
    """What `opkit.check` reported first of an operator, and whether torch's own tests noticed anything."""

    name: str
    verdict: Verdict
    reported: str  # row [kind]: cause
    seconds: float
    noticed: str = ""  # by torch's own tests

    def json(self) -> dict[str, Any]:
        return asdict(self)


def judge(entry: Entry, *, compiled: bool | None = None) -> Judgement:
    """Check an operator. Rows that compile run if its fault is one of a compiler, or if `compiled` is True."""
    operator, start = entry.define(), time.perf_counter()
    compiled = entry.cause in COMPILED if compiled is None else compiled
    try:
        failures = opkit.check(operator, **entry.declare, compiled=compiled).failures
    except Exception as error:
        reported = f"check raised {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Judgement(entry.name, "wrong" if entry.cause else "alarm", reported, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    reported = "; ".join(f"{f.name} [{f.kind}] {f.cause}" for f in failures)
    return Judgement(entry.name, _verdict(entry, failures), reported, seconds)


def _verdict(entry: Entry, failures: Any) -> Verdict:
    """The first failure is the cause; it is right by the kind that it names, or by its row."""
    if not entry.cause:
        return "alarm" if failures else "clean"
    if not failures:
        return "missed"
    return "right" if {failures[0].name, failures[0].kind} & entry.accepted else "wrong"


def torch_notices(entry: Entry) -> str:
    """What opcheck, gradcheck and gradgradcheck report; empty if nothing."""
    operator = entry.define()
    arguments, settings = _arguments(entry, operator)
    tests = [lambda: _opcheck(operator, arguments, settings)]
    call = operator.apply if isinstance(operator, type) else operator
    inputs = [x.clone().requires_grad_() if _is_float(x) else x for x in arguments]
    for test in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        tests.append(lambda test=test: test(lambda *x: call(*x, **settings), inputs))
    for test in tests if _differentiable(call, inputs, settings) else tests[:1]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                test()
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def _arguments(entry: Entry, operator: Any) -> tuple[list[Any], dict[str, Any]]:
    """A copy of the first sample with the base value of each setting, by name."""
    samples = entry.declare.get("samples", [(torch.rand(3, 4, dtype=torch.double) + 0.5,)])
    arguments = [x.clone() if isinstance(x, Tensor) else x for x in samples[0]]
    function = operator.forward if isinstance(operator, type | torch.nn.Module) else operator
    names = _names(function)[: len(arguments)]
    settings = {k: v[0] for k, v in entry.declare.get("settings", {}).items() if k not in names}
    if isinstance(operator, type):  # `apply` takes no keywords
        return [*arguments, *settings.values()], {}
    return arguments, settings


def _names(function: Any) -> list[str]:
    overload = getattr(function, "_opoverload", function)
    if isinstance(overload, torch._ops.OpOverload):
        return [a.name for a in overload._schema.arguments]
    try:
        return [name for name in inspect.signature(function).parameters if name != "ctx"]
    except ValueError:
        return []


def _opcheck(operator: Any, arguments: list[Any], settings: dict[str, Any]) -> None:
    overload = getattr(operator, "_opoverload", operator)
    if isinstance(overload, torch._ops.OpOverloadPacket):
        overload = overload.default
    if isinstance(overload, torch._ops.OpOverload):
        torch.library.opcheck(overload, tuple(arguments), settings)


def _differentiable(call: Any, inputs: list[Any], settings: dict[str, Any]) -> bool:
    outputs = call(*inputs, **settings)
    outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
    if not any(isinstance(y, Tensor) and y.requires_grad for y in outputs):
        return False
    try:
        torch.autograd.grad(
            [y.sum() for y in outputs if y.requires_grad], [x for x in inputs if _is_float(x)], allow_unused=True
        )
    except RuntimeError as error:
        return "no autograd formula" not in str(error)
    return True


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()
