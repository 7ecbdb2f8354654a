"""Frames of any integer type are read as the same prices."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data

TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", [*TYPES, *(name.replace("i", "I").replace("u", "U") for name in TYPES)])
def test_frame_of_any_integer_type_is_read(dtype: str) -> None:
    frame = pd.DataFrame({"WTI": 50 + np.arange(60) % 7}, index=pd.bdate_range("2018-01-01", periods=60))
    panel = data.to_panel(frame.astype(dtype))
    assert panel.values.plain()[:, 0].tolist() == frame["WTI"].tolist()
