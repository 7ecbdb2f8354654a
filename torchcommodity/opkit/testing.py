"""The contract as pytest sees it: one class, a test for each row.

class TestSquare(OpContract):
    operator = operator
"""

from functools import cache
from typing import Any, ClassVar
from unittest import SkipTest

from torchcommodity.opkit._check.rows import ROWS, Report
from torchcommodity.opkit._check.runner import check


class OpContract:
    """Subclass it in a test module and name the operator; rows that do not apply are skipped with a reason."""

    operator: ClassVar[Any]  # a record, or an operator of any other make
    cases: ClassVar[Any] = None  # for one that has none of its own, as `check` takes them
    compiled: ClassVar[bool] = True  # also the rows that compile and export, which take seconds each

    def pytest_generate_tests(self, metafunc: Any) -> None:
        rows = [row.name for row in ROWS.values() if metafunc.cls.compiled or not row.compiled]
        metafunc.parametrize("row", rows)

    def test_contract(self, row: str) -> None:
        result = _report(vars(type(self))["operator"], self.cases, self.compiled)[row]
        if result.status == "skip":
            raise SkipTest(result.cause)
        assert result.status == "pass", str(result)


@cache
def _report(operator: Any, cases: Any, compiled: bool) -> Report:
    return check(operator, cases=cases, compiled=compiled)
