"""Comparison of many models at once: the model confidence set and the test for superior predictive ability."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torch_opkit.arguments import check_integer, current_operation, operation, raise_invalid
from torchcommodity._extras import extra

if TYPE_CHECKING:
    import pandas as pd

REPLICATIONS = 1000


@dataclass(frozen=True)
class ModelConfidenceSet:
    """Result of `model_confidence_set`.

    Args:
        included: models that the data cannot tell from the best.
        excluded: models that are worse than the best.
        p_values: of each model; it is excluded if its p-value is at most `size`.
        size: 1 minus the confidence level.
        observations: rows with a loss of every model.
    """

    included: tuple[str, ...]
    excluded: tuple[str, ...]
    p_values: dict[str, float]
    size: float
    observations: int


@dataclass(frozen=True)
class SuperiorPredictiveAbility:
    """Result of `superior_predictive_ability`.

    Args:
        benchmark: model that the others are compared with.
        best: the other model with the lowest mean loss.
        p_value: that no model is better than the benchmark, Hansen's consistent one; a small one says that `best` is
            better, although it was selected as the best of many.
        p_lower, p_upper: bounds of `p_value`; the upper one is White's reality check.
        observations: rows with a loss of every model.
    """

    benchmark: str
    best: str
    p_value: float
    p_lower: float
    p_upper: float
    observations: int


@operation("model_confidence_set")
def model_confidence_set(
    losses: "pd.DataFrame",  # (T, K)
    *,
    block: int,
    size: float = 0.10,
    replications: int = REPLICATIONS,
    seed: int = 0,
) -> ModelConfidenceSet:
    """Models that contain the best one with confidence `1 - size`: Hansen, Lunde and Nason's set, by `arch`.

    Models are eliminated one by one until equal expected losses cannot be rejected, by a stationary bootstrap of the
    range statistic.

    Args:
        losses: loss per row, a column per model, such as `pinball_by_date`; lower is better. Rows with a NaN are left
            out.
        block: mean block length of the bootstrap in rows; at least the horizon if targets overlap.
        size: 1 minus the confidence level, in (0, 1).
        replications: number of bootstrap samples.
        seed: random seed of the bootstrap.

    Raises:
        TypeError: `losses` is not a DataFrame.
        ValueError: fewer than 2 models or rows than two blocks, a repeated name, or a setting out of range.

    References:
        Hansen, Lunde, Nason (2011). The model confidence set. Econometrica 79(2). doi:10.3982/ECTA5771.

    Example:
        >>> import pandas as pd
        >>> random = np.random.default_rng(1)
        >>> losses = pd.DataFrame(random.standard_normal((500, 3)) + [0.0, 0.02, 0.5], columns=["a", "b", "c"])
        >>> model_confidence_set(losses, block=5).included
        ('a', 'b')
    """
    valid = _valid_losses(losses, block, replications)
    if not 0 < size < 1:
        raise_invalid("model_confidence_set", "size must be in (0, 1)", size=size)
    # of models with equal losses, whose difference has no variance to studentize with, one is tested
    distinct = valid.loc[:, ~valid.T.duplicated()]
    twins = [next(i for i, k in enumerate(distinct) if valid[name].equals(distinct[k])) for name in valid]
    p = _elimination_p_values(distinct, size, block, replications, seed)
    p_values = {str(name): p[twin] for name, twin in zip(valid, twins)}
    included = tuple(name for name, value in p_values.items() if value > size)
    excluded = tuple(name for name in p_values if name not in included)
    return ModelConfidenceSet(included, excluded, p_values, size, len(valid))


@operation("superior_predictive_ability")
def superior_predictive_ability(
    losses: "pd.DataFrame",  # (T, K)
    benchmark: str,
    *,
    block: int,
    replications: int = REPLICATIONS,
    seed: int = 0,
) -> SuperiorPredictiveAbility:
    """Is the best of many models better than a benchmark, allowing for the search? Hansen's SPA test, by `arch`.

    Args:
        losses: loss per row, a column per model; lower is better, for portfolios minus the return. Rows with a NaN are
            left out.
        benchmark: column that the others are compared with.
        block: mean block length of the bootstrap in rows; at least the horizon if targets overlap.
        replications: number of bootstrap samples.
        seed: random seed of the bootstrap.

    Raises:
        ValueError: fewer than 2 models or rows than two blocks, an unknown benchmark, or a setting out of range.

    References:
        Hansen (2005). A test for superior predictive ability. J. Business & Economic Statistics 23(4).
        doi:10.1198/073500105000000063.
        White (2000). A reality check for data snooping. Econometrica 68(5). doi:10.1111/1468-0262.00152.

    Example:
        >>> import pandas as pd
        >>> random = np.random.default_rng(0)
        >>> losses = pd.DataFrame(random.standard_normal((500, 3)) + [0.5, 0.4, 0.0], columns=["a", "b", "c"])
        >>> test = superior_predictive_ability(losses, "a", block=5)
        >>> test.best, test.p_value
        ('c', 0.0)
    """
    with extra("forecast"):
        from arch.bootstrap import SPA

    valid = _valid_losses(losses, block, replications)
    if benchmark not in valid.columns:
        names = ", ".join(map(str, valid.columns))
        raise_invalid("superior_predictive_ability", f"benchmark must be one of {names}", benchmark=benchmark)
    others = valid.drop(columns=benchmark)
    # a model with the losses of the benchmark has no variance to studentize with
    distinct = others.loc[:, (others.sub(valid[benchmark], axis=0) != 0).any()]
    best = str(others.mean().idxmin())
    if distinct.empty:
        return SuperiorPredictiveAbility(benchmark, best, 1.0, 1.0, 1.0, len(valid))
    test = SPA(valid[benchmark].to_numpy(), distinct.to_numpy(), block, replications, seed=seed)
    test.compute()
    p = {name: float(test.pvalues[name]) for name in ("lower", "consistent", "upper")}
    return SuperiorPredictiveAbility(benchmark, best, p["consistent"], p["lower"], p["upper"], len(valid))


def _elimination_p_values(losses: "pd.DataFrame", size: float, block: int, replications: int, seed: int) -> list[float]:
    """P-value of each model, of which no two have equal losses."""
    if losses.shape[1] == 1:
        return [1.0]
    with extra("forecast"):
        from arch.bootstrap import MCS

    test = MCS(losses.to_numpy(), size, reps=replications, block_size=block, seed=seed)
    test.compute()
    p_values: list[float] = test.pvalues["Pvalue"].sort_index().tolist()
    return p_values


def _valid_losses(losses: "pd.DataFrame", block: int, replications: int) -> "pd.DataFrame":
    """Rows with a loss of every model."""
    import pandas as pd

    operation = current_operation()
    check_integer(operation, 1, block=block, replications=replications)
    if not isinstance(losses, pd.DataFrame):
        raise_invalid(operation, "losses must be a DataFrame (T, K)", TypeError, losses=type(losses).__name__)
    if str(losses.columns.inferred_type).startswith(("datetime", "date", "period")):
        rule = "losses must be (T, K), a row for each date and a column for each model; pass losses.T"
        raise_invalid(operation, rule, losses=losses.shape)
    if not losses.columns.is_unique:
        raise_invalid(operation, "every model must have a name of its own", columns=losses.columns.tolist())
    valid: pd.DataFrame = losses.loc[np.isfinite(losses.to_numpy()).all(1)]
    if losses.shape[1] < 2 or len(valid) < 2 * block:
        rule = "losses must have at least 2 models, and 2 blocks of rows with a loss of every model"
        raise_invalid(operation, rule, models=losses.shape[1], rows=len(valid), block=block)
    return valid
