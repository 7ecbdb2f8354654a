"""What PyTorch knows about an operator: its schema, fake, autograd formula and name."""

import contextlib
import copy
import functools
import pickle
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import UnsupportedOperatorException
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_opkit._contract.case import Case, Fault, SkipCheck, as_leaf, float_tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.support import find_cause
from torch_opkit._contract.values import BASE
from torch_opkit._mutation import as_results, mutated_indices
from torch_opkit._op import Op

FAKE = (
    "Register a fake kernel with `torch.library.register_fake`: a function of the same arguments that gives every "
    "output its shape, dtype and strides, without values."
)


def _opcheck(case: Case, test: str) -> None:
    """Run one of PyTorch's own operator tests, on the arguments that the public function passes."""
    written = mutated_indices(case.op.overload)  # a leaf that requires a gradient cannot be written to
    leaves = [as_leaf(x) if i not in written else x.detach().clone() for i, x in enumerate(case.arguments)]
    arguments = leaves if case.op.backward else case.arguments
    # opcheck compares without equal_nan, and so fails on every operator with a warm-up.
    assert_close = functools.partial(torch.testing.assert_close, equal_nan=True)
    with mock.patch("torch.testing.assert_close", assert_close):
        results = torch.library.opcheck(
            case.op.overload, tuple(arguments), case.keywords, test_utils=test, raise_exception=False
        )
    if isinstance(results[test], UnsupportedOperatorException):
        raise Fault(
            "fake_missing", "no fake kernel is registered: the operator can be neither compiled nor exported", FAKE
        )
    error: Any = results[test]
    if isinstance(error, Exception):
        cause = find_cause(error)
        raise cause if cause and cause.kind == "gradient_count" else AssertionError(str(error))


@register("The kernel does not do what its schema says: it changes an argument or returns one.", depends_on=BASE)
def schema(case: Case) -> None:
    """The kernel agrees with the schema (`opcheck`)."""
    _opcheck(case, "test_schema")


@register(
    "`fake` must give every output the shape, dtype and strides of the kernel's: `x.new_empty(shape)`.",
    depends_on=BASE,
)
def fake(case: Case) -> None:
    """`fake` gives the shape, dtype and strides of the outputs (`opcheck`); of a foreign operator, in other sizes."""
    _opcheck(case, "test_faketensor")
    for axis in () if isinstance(case.op, Op) else (0, -1):
        shorter = _shorten(case, axis)
        try:
            shorter.call()
        except Exception:  # refused
            continue
        _opcheck(shorter, "test_faketensor")


def _shorten(case: Case, axis: int) -> Case:
    """One element less on an axis of the first tensor, and of those that have its length there."""
    length = case.tensors[0].shape[axis] if isinstance(case.tensors[0], Tensor) and case.tensors[0].dim() else 0

    def shorten(x: Tensor) -> Tensor:
        fits = x.dim() > 0 and x.shape[axis] == length > 1
        return x.narrow(axis, 0, length - 1).contiguous() if fits else x

    return case.map_tensors(shorten)


@register(
    "Differentiate on the Autograd key only: pass `backward` to the record, and keep `autograd.Function` out of the "
    "kernel.",
    depends_on=BASE,
)
def autograd_registration(case: Case) -> None:
    """Outputs are differentiable if, and only if, the record has a backward formula (`opcheck`)."""
    written = mutated_indices(case.op.overload)
    arguments = [x.clone() if i in written else x for i, x in enumerate(map(as_leaf, case.arguments))]
    if written and not case.op.backward:
        raise SkipCheck("no backward formula: it refuses to write to a tensor that requires a gradient")
    outputs = (*(arguments[i] for i in written), *as_results(case.op.overload(*arguments, **case.keywords)))
    actual = [y.requires_grad for y in float_tensors(outputs)]
    expected = bool(case.op.backward) and any(x.requires_grad for x in map(as_leaf, case.tensors) if x is not None)
    assert actual == [expected] * len(actual), f"outputs that require a gradient: expected {expected}; got {actual}"
    if expected and any(isinstance(x, Tensor) and i not in written for i, x in enumerate(case.arguments)):
        _opcheck(case, "test_autograd_registration")


@register(
    "The public function reads values: `.item()`, `float(x)`, `if x.any()`. Branch on shapes and settings, and select "
    "with `torch.where`.",
    depends_on=("fake",),
)
def no_data_dependence(case: Case) -> None:
    """The public function runs on fake tensors, without reading values."""
    expected = case.call()
    with FakeTensorMode(allow_non_fake_inputs=not isinstance(case.op, Op)) as mode:
        outputs = case.map_tensors(lambda x: mode.from_tensor(x)).call()
    actual, expected_forms = ([(tuple(y.shape), y.dtype) for y in ys] for ys in (outputs, expected))
    assert actual == expected_forms, f"on fake tensors: expected {expected_forms}; got {actual}"


@register(
    "Under AOT dispatch the operator or its backward formula gives another result: make both of operators only.",
    depends_on=("fake", "autograd_registration"),
    first_sample_only=True,
)
def aot_dispatch(case: Case) -> None:
    """Eager mode and AOT dispatch agree, for any shape (`opcheck`)."""
    _opcheck(case, "test_aot_dispatch_dynamic")


class RefuseMixedDevices(TorchDispatchMode):
    """Dispatch mode that fails if tensors of the meta device and of the CPU meet, where meta kernels do not look."""

    ALLOWED = (torch.ops.aten.copy_, torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_)

    def __torch_dispatch__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        on_cpu = [x for x in tensors if x.dim() and x.device.type == "cpu"]
        if on_cpu and len(on_cpu) < len(tensors) and func.overloadpacket not in self.ALLOWED:
            message = f"{func} receives a tensor {tuple(on_cpu[0].shape)} on the CPU beside the input's device"
            raise Fault("hard_coded_device", message)
        return func(*args, **(kwargs or {}))


@register(
    "The public function creates a tensor on the CPU. Create it on the device of the input: `x.new_zeros`, "
    "`device=x.device`.",
    depends_on=("no_data_dependence",),
)
def meta(case: Case) -> None:
    """On the meta device: the shape, dtype and strides of the CPU result."""
    expected = case.call()
    with contextlib.nullcontext() if isinstance(case.op, Op) else RefuseMixedDevices():  # type: ignore[no-untyped-call]
        outputs = case.map_tensors(lambda x: x.to("meta")).call()
    for y, z in zip(outputs, expected, strict=True):
        assert y.device.type == "meta", f"meta input: expected meta output; got {y.device.type}"
        on_meta, on_cpu = ((tuple(v.shape), v.stride(), v.dtype) for v in (y, z))
        assert on_meta == on_cpu, f"on meta: expected {on_cpu}; got {on_meta}"


@register(
    "Records are pickled by name: keep the operator's module importable, and its reference at module level.",
    first_sample_only=True,
)
def pickle_and_copy(case: Case) -> None:
    """The record survives pickle and deepcopy."""
    assert copy.deepcopy(case.op).overload is case.op.overload, "deepcopy gives another operator"
    assert pickle.loads(pickle.dumps(case.op)).overload is case.op.overload, "pickle gives another operator"
