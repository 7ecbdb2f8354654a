"""RollMonths: `data.roll_months` as a table lookup."""

import numpy as np
import pytest
import torch

from torchcommodity import data
from torchcommodity.export._roll_months import RollMonths


@pytest.mark.parametrize("code", ["CL", "BRN", "G", "C", "GC", "FC"])
def test_roll_months_of_the_graph_equal_those_of_data(code: str) -> None:
    days = np.arange("1970-01-01", "2060-12-31", dtype="datetime64[D]")
    sample = days[np.random.default_rng(0).random(len(days)) < 0.6]
    for first, last in ((0, len(sample)), (0, 5), (700, 900), (11000, 11003)):
        rows = sample[first:last]
        rolls = RollMonths([None, code], 126)(torch.from_numpy(rows.astype(np.int64))[None])[0]
        expected = data.roll_months(code, rows, 126)
        closed = ~np.is_busday(rows, busdaycal=data.trading_calendar(code)) & (expected[: len(rows)] == 0)
        expected[: len(rows)][closed] = -1
        assert np.array_equal(rolls[:, 1].numpy(), expected)
        assert not rolls[:, 0].any()


@pytest.mark.parametrize("day", [-1, -40, 60000])
def test_roll_months_rejects_day_outside_its_range(day: int) -> None:
    with pytest.raises(IndexError):
        RollMonths(["CL"], 5)(torch.tensor([[day]]))
