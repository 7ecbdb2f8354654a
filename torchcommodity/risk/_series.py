"""Series of observations as NumPy arrays, aligned by their labels and checked once for every test."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from torch_opkit.arguments import current_operation, raise_invalid

FEW_ROWS = 20  # below which any share of exceedances may be chance
Series = np.ndarray[Any, np.dtype[np.float64]]


def aligned_series(**series: ArrayLike) -> list[Series]:  # (T,) each
    """Series as float64; ValueError unless all are (T,) of one length.

    Those of pandas are aligned by their index, in its order where it has dates; two different indexes are refused.
    """
    columns: dict[str, Any] = dict(series)
    labels = {name: values.index for name, values in columns.items() if hasattr(values, "reindex")}  # of pandas
    for name, index in list(labels.items())[1:]:
        first, own = next(iter(labels.items()))
        if not own.equals(index) and (own.has_duplicates or not own.sort_values().equals(index.sort_values())):
            got = {
                f"labels of {one} alone": len(a.difference(b))
                for one, a, b in ((first, own, index), (name, index, own))
            }
            hint = f"align them first: {first}, {name} = {first}.align({name}, join='inner')"
            raise_invalid(current_operation(), f"{first} and {name} must have the same index; {hint}", **got)
    if labels:
        order = next(iter(labels.values()))
        if isinstance(order.dtype, np.dtype) and order.dtype.kind == "M" and not order.is_monotonic_increasing:
            if len(labels) < len(series):
                others = ", ".join(name for name in series if name not in labels)
                raise_invalid(
                    current_operation(), f"{next(iter(labels))} must be in order of dates beside arrays", arrays=others
                )
            order = order.sort_values()
        if not order.has_duplicates:
            columns = {name: x.reindex(order) if name in labels else x for name, x in columns.items()}
    values = (x.detach().cpu() if isinstance(x, Tensor) else x for x in columns.values())
    arrays: list[Series] = [np.asarray(x, dtype=np.float64) for x in values]
    if any(x.ndim != 1 for x in arrays) or len({len(x) for x in arrays}) > 1:
        shapes = dict(zip(series, (x.shape for x in arrays)))
        raise_invalid(current_operation(), f"{', '.join(series)} must be series (T,) of one length", **shapes)
    return arrays


def check_level(level: object) -> None:
    """Raise ValueError for a confidence level that is not a number in (0, 1)."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise_invalid(current_operation(), "level must be in (0, 1)", level=level)


def check_no_tail(name: str, level: float) -> None:
    """Raise ValueError for a level such as 0.05, which is the share of the tail."""
    if 0 < level < 0.5:
        rule = f"level must be the confidence level, such as {1 - level:g}, not the share {level:g} of the tail"
        raise_invalid(name, rule, level=level)


def check_signs(returns: Series, value_at_risk: Series) -> None:
    """Raise ValueError for a value at risk with the sign turned, or one that most losses exceed."""
    share = float((returns < -value_at_risk).mean())
    is_own = current_operation() != "evaluate_tails"  # which takes value at risk from quantiles, of a gain too
    if is_own and len(returns) >= FEW_ROWS and share > 0.5:
        is_turned = np.median(value_at_risk) < 0
        rule = "positive for a loss; pass -value_at_risk" if is_turned else "in the unit and of the rows of returns"
        raise_invalid(current_operation(), f"value_at_risk must be {rule}", exceedances=f"{share:.0%}")
