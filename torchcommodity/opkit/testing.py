"""The operator contract for pytest: a test class with one test per check.

class TestSquare(OpContract):
    operator = operator
"""

from functools import cache
from typing import Any, ClassVar
from unittest import SkipTest

from torchcommodity.opkit._contract.checks import CHECKS
from torchcommodity.opkit._contract.report import Report
from torchcommodity.opkit._contract.runner import check


class OpContract:
    """Base class: subclass it in a test module and set `operator`. Checks that do not apply are skipped."""

    operator: ClassVar[Any]  # an Op record, or any other operator
    cases: ClassVar[Any] = None  # for an operator without a record, as `check` takes them
    compiled: ClassVar[bool] = True  # include the checks that compile and export, which take seconds each

    def pytest_generate_tests(self, metafunc: Any) -> None:
        names = [check.name for check in CHECKS.values() if metafunc.cls.compiled or not check.compiled]
        metafunc.parametrize("name", names)

    def test_contract(self, name: str) -> None:
        result = _report(vars(type(self))["operator"], self.cases, self.compiled)[name]
        if result.status == "skip":
            raise SkipTest(result.cause)
        assert result.status == "pass", str(result)


@cache
def _report(operator: Any, cases: Any, compiled: bool) -> Report:
    return check(operator, cases=cases, compiled=compiled)
