"""Arguments and results of TA-Lib's functions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from talib import abstract
from torch import Tensor


def select_inputs(name: str, panels: Mapping[str, Tensor]) -> list[Tensor]:
    """The panels of a function, by TA-Lib's names, in the order in which TA-Lib takes them."""
    return [panels[key] for key in np.hstack(list(abstract.Function(name).input_names.values()))]


def outputs(result: Any) -> list[Any]:
    """The outputs of a function that returns one or a tuple."""
    return list(result) if isinstance(result, tuple) else [result]
