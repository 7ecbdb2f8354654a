"""What PyTorch is told of an operator: its schema, its fake, its autograd, its name."""

import copy
import functools
import pickle
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Subject, as_tuple, floats
from torchcommodity.opkit._check.values import BASE


def _opcheck(subject: Subject, test: str) -> None:
    """PyTorch's own test of the operator, with the arguments that the public function hands to it."""
    arguments = [_leaf(x) if subject.op.backward else x for x in subject.arguments]
    # opcheck compares without equal_nan, and fails on every operator with a warm-up
    patient = functools.partial(torch.testing.assert_close, equal_nan=True)
    with mock.patch("torch.testing.assert_close", patient):
        results = torch.library.opcheck(subject.op.overload, tuple(arguments), test_utils=test, raise_exception=False)
    if isinstance(results[test], Exception):
        raise AssertionError(str(results[test]))


def _leaf(x: Any) -> Any:
    floating = isinstance(x, Tensor) and x.is_floating_point()
    return x.detach().clone().requires_grad_() if floating else x


@row("The schema promises what the kernel does not keep: it changes an argument or returns one.", after=BASE)
def schema(subject: Subject) -> None:
    """The schema tells the truth (`opcheck`)."""
    _opcheck(subject, "test_schema")


@row("`fake` must give every output the shape, dtype and strides of the kernel's: `x.new_empty(shape)`.", after=BASE)
def fake(subject: Subject) -> None:
    """The fake tells shape, dtype and strides (`opcheck`)."""
    _opcheck(subject, "test_faketensor")


@row(
    "Differentiate on the Autograd key only: give `backward` to the record, no `autograd.Function` to the kernel.",
    after=BASE,
)
def autograd(subject: Subject) -> None:
    """Outputs can be differentiated if the record has a backward formula, and only then (`opcheck`)."""
    outputs = subject.op.overload(*map(_leaf, subject.arguments))
    attached = [y.requires_grad for y in floats(as_tuple(outputs))]
    expected = bool(subject.op.backward) and any(x.requires_grad for x in map(_leaf, subject.tensors) if x is not None)
    assert attached == [expected] * len(attached), f"outputs require a gradient: {attached}, by the record: {expected}"
    if expected:
        _opcheck(subject, "test_autograd_registration")


@row(
    "The public function looks at values: `.item()`, `float(x)`, `if x.any()`. Decide by shapes and settings, choose "
    "with `torch.where`.",
    after=("fake",),
)
def traced(subject: Subject) -> None:
    """The public function runs without looking at values."""
    expected = subject.call()
    with FakeTensorMode() as mode:
        got = subject.mapped(lambda x: mode.from_tensor(x)).call()
    described = [[(tuple(y.shape), y.dtype) for y in outputs] for outputs in (got, expected)]
    assert described[0] == described[1], f"without values {described[0]}, with values {described[1]}"


@row(
    "Under AOT dispatch the operator or its backward formula gives something else: both must be made of operators.",
    after=("fake", "autograd"),
    once=True,
)
def aot_dispatch(subject: Subject) -> None:
    """Eager mode and AOT dispatch agree, for any shape (`opcheck`)."""
    _opcheck(subject, "test_aot_dispatch_dynamic")


@row(
    "The public function makes a tensor on the CPU. Make it where the input is: `x.new_zeros`, `device=x.device`.",
    after=("traced",),
)
def meta(subject: Subject) -> None:
    """On meta tensors: shape, dtype and strides, without values."""
    got, expected = subject.mapped(lambda x: x.to("meta")).call(), subject.call()
    for y, z in zip(got, expected, strict=True):
        assert y.device.type == "meta", f"meta in, {y.device.type} out"
        described = [(tuple(v.shape), v.stride(), v.dtype) for v in (y, z)]
        assert described[0] == described[1], f"on meta {described[0]}, on cpu {described[1]}"


@row(
    "The record is found by its name: keep the operator's module importable, and its reference at module level.",
    once=True,
)
def pickled(subject: Subject) -> None:
    """The record survives pickle and deepcopy."""
    assert copy.deepcopy(subject.op).overload is subject.op.overload, "deepcopy gives another operator"
    assert pickle.loads(pickle.dumps(subject.op)).overload is subject.op.overload, "pickle gives another operator"
