"""The operator contract for pytest: a test class with one test per check.

class TestSquare(OpContract):
    operator = operator

An operator without an `Op` record says what it is, as in `check`:

class TestSmooth(OpContract):
    operator, time, causal, warmup = smooth, -2, True, 0
"""

import inspect
from functools import cache
from typing import Any, ClassVar
from unittest import SkipTest

from torch_opkit._contract.checks import CHECKS
from torch_opkit._contract.report import Report
from torch_opkit._contract.runner import check

__all__ = ["OpContract"]

STATED = ("samples", "time", "causal", "warmup", "reference", "settings", "bad_inputs", "cases", "compiled")


class OpContract:
    """Base class: subclass it in a test module and set `operator`. Checks that do not apply are skipped.

    The other attributes are the arguments of `check` with the same name.
    """

    operator: ClassVar[Any]  # an Op record, or any other operator
    samples: ClassVar[Any] = None
    time: ClassVar[Any] = "guess"
    causal: ClassVar[Any] = None
    warmup: ClassVar[Any] = None
    reference: ClassVar[Any] = None
    settings: ClassVar[Any] = None
    bad_inputs: ClassVar[Any] = ()
    cases: ClassVar[Any] = None
    compiled: ClassVar[bool] = True  # include the checks that compile and export, which take seconds each

    def pytest_generate_tests(self, metafunc: Any) -> None:
        names = [check.name for check in CHECKS.values() if metafunc.cls.compiled or not check.compiled]
        metafunc.parametrize("name", names)

    def test_contract(self, name: str) -> None:
        contract: Any = type(self)  # mypy does not take a type as hashable
        result = _report(contract)[name]
        if result.status == "skip":
            raise SkipTest(result.cause)
        assert result.status == "pass", str(result)


@cache
def _report(contract: type[OpContract]) -> Report:
    return check(_attribute(contract, "operator"), **{name: _attribute(contract, name) for name in STATED})


def _attribute(contract: type[OpContract], name: str) -> Any:
    """A class attribute as it was written: a function stays a function of its own arguments."""
    value = inspect.getattr_static(contract, name)
    return value.__func__ if isinstance(value, staticmethod) else value
