"""The contract: every promise that an operator makes by standing in the registry, one row each.

    report = opkit.check(operator)
    print(report)

The rows are judged in the order of the imports below. Each compares with what earlier rows have established, so that
one fault fails one row.
"""

from torchcommodity.opkit._check import memory as _memory  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import values as _values  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import registration as _registration  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import layouts as _layouts  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import gradients as _gradients  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import causality as _causality  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import missing as _missing  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import transforms as _transforms  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import precision as _precision  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import doors as _doors  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import compiled as _compiled  # noqa: F401  # isort: skip
from torchcommodity.opkit._check import exported as _exported  # noqa: F401  # isort: skip
from torchcommodity.opkit._check.rows import ROWS as ROWS
from torchcommodity.opkit._check.rows import Report as Report
from torchcommodity.opkit._check.rows import Result as Result
from torchcommodity.opkit._check.runner import check as check

__all__ = ["ROWS", "Report", "Result", "check"]
