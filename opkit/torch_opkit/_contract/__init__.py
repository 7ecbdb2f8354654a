"""The operator contract: the checks that every operator must pass.

    report = opkit.check(operator)
    print(report)

Checks run in the order of the imports below. Each compares with what earlier checks have established, so that one
fault fails one check.
"""

from torch_opkit._contract import determinism as _determinism  # noqa: F401  # isort: skip
from torch_opkit._contract import settings as _settings  # noqa: F401  # isort: skip
from torch_opkit._contract import memory as _memory  # noqa: F401  # isort: skip
from torch_opkit._contract import values as _values  # noqa: F401  # isort: skip
from torch_opkit._contract import registration as _registration  # noqa: F401  # isort: skip
from torch_opkit._contract import layouts as _layouts  # noqa: F401  # isort: skip
from torch_opkit._contract import gradients as _gradients  # noqa: F401  # isort: skip
from torch_opkit._contract import causality as _causality  # noqa: F401  # isort: skip
from torch_opkit._contract import live as _live  # noqa: F401  # isort: skip
from torch_opkit._contract import edges as _edges  # noqa: F401  # isort: skip
from torch_opkit._contract import missing as _missing  # noqa: F401  # isort: skip
from torch_opkit._contract import transforms as _transforms  # noqa: F401  # isort: skip
from torch_opkit._contract import precision as _precision  # noqa: F401  # isort: skip
from torch_opkit._contract import boundary as _boundary  # noqa: F401  # isort: skip
from torch_opkit._contract import compiled as _compiled  # noqa: F401  # isort: skip
from torch_opkit._contract import exported as _exported  # noqa: F401  # isort: skip
from torch_opkit._contract.checks import CHECKS as CHECKS
from torch_opkit._contract.report import Report as Report
from torch_opkit._contract.report import Result as Result
from torch_opkit._contract.runner import check as check

__all__ = ["CHECKS", "Report", "Result", "check"]
