"""usable_symbols, check_history: symbols that no model can be fitted on are named."""

import numpy as np
import pandas as pd
import pytest

from torch_opkit.arguments import operation
from torchcommodity.data import Panel, to_panel
from torchcommodity.models import HarConfig
from torchcommodity.training import check_history, usable_symbols


def panel(lengths: dict[str, int]) -> Panel:
    """Alternating prices, NaN after the given number of rows."""
    prices = {
        name: np.where(np.arange(600) < length, 1.0 + np.arange(600) % 2, np.nan) for name, length in lengths.items()
    }
    return to_panel(pd.DataFrame(prices, pd.bdate_range("2010-01-04", periods=600)))


def test_check_history_names_symbols_without_prices() -> None:
    with (
        operation("fit"),
        pytest.raises(ValueError, match="fit: every symbol must have positive prices; got none for B"),
    ):
        check_history(panel({"A": 600, "B": 0}), HarConfig())


def test_check_history_names_symbols_with_too_few_prices() -> None:
    message = r"tune: every symbol must have at least 505 positive prices .*; got B 504"
    with operation("tune"), pytest.raises(ValueError, match=message):
        check_history(panel({"A": 600, "B": 504}), HarConfig())
    check_history(panel({"A": 600, "B": 505}), HarConfig())


def test_usable_symbols_have_enough_prices() -> None:
    assert usable_symbols(panel({"A": 600, "B": 504, "C": 0, "D": 505})) == ("A", "D")
