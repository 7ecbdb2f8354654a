"""Functions that import a package of an extra say what to install where it is missing."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from torchcommodity import charts, portfolio, risk, scenarios


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("plotly", lambda: charts.plotly_figure({"data": [], "layout": {}}, "prices")),
        ("scipy", lambda: risk.kupiec_test(np.ones(9), np.ones(9))),
        ("arch", lambda: scenarios.stationary_bootstrap(torch.ones(9, 1), ("WTI",), 1, 3)),
        ("arch", lambda: portfolio.sharpe_difference(np.arange(9.0), np.arange(9.0) ** 2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_missing_package_error_names_the_extra(
    package: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {package}.*: pip install 'torchcommodity\[forecast\]'"):
        call()
