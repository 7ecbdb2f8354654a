"""One call for the quantiles of every foundation model: Chronos, TimesFM, TiRex, or a function of your own.

A model is recognized by its methods; its package is not imported. Interfaces: chronos-forecasting 2.3 (Chronos,
Chronos-Bolt, Chronos-2), timesfm 3.0 (TimesFM 2.5 and 3), tirex-ts 1.4 (TiRex), tirex-2 0.4 (TiRex-2).
"""

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

DECILES = tuple(round(0.1 * k, 1) for k in range(1, 10))


Contexts = list[Tensor]
Levels = Sequence[float]


class QuantilePipeline(Protocol):
    """A function that forecasts quantiles of the values after each of several series."""

    def __call__(self, contexts: Contexts, horizon: int, levels: Levels) -> Any:
        """Quantiles (B, horizon, Q) of the value at each of the next `horizon` steps, as a Tensor or an array.

        Args:
            contexts: B series (L_b,), float32 on the CPU, oldest value first, without NaN.
            horizon: number of steps.
            levels: Q levels in ascending order.
        """


class StepQuantiles(NamedTuple):
    """Quantiles of the value at every step, at the levels of the model."""

    values: Any  # (B, horizon, Q) Tensor or array
    levels: Levels  # Q


Pipeline = Callable[[Contexts, int, Levels], StepQuantiles]


def read_pipeline(pipeline: Any) -> Pipeline:
    """Find the function that calls a model.

    Raises:
        TypeError: neither a model of a known family nor callable.
    """
    forecast = getattr(pipeline, "forecast", None)
    arguments = set(signature(forecast).parameters) if callable(forecast) else set()
    if callable(getattr(pipeline, "predict_quantiles", None)):
        call = _chronos
    elif callable(getattr(pipeline, "predict_batch", None)):
        call = _timesfm3
    elif {"horizon", "inputs"} <= arguments:
        call = _timesfm
    elif {"timeseries", "prediction_length"} <= arguments:
        call = _tirex2
    elif "context" in arguments:
        call = _tirex
    elif callable(pipeline):
        call = _function
    else:
        raise TypeError(
            "pretrained: pipeline must have predict_quantiles (Chronos), forecast or predict_batch (TimesFM), "
            f"forecast (TiRex), or be a function (contexts, horizon, levels); got {type(pipeline).__name__}"
        )
    return partial(call, pipeline)


def checked_quantiles(pipeline: Pipeline, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    """Quantiles of a model as float64, sorted along the levels.

    Sorting is the rearrangement of Chernozhukov, Fernández-Val, Galichon (2010), Quantile and probability curves
    without crossing, Econometrica 78(3), doi:10.3982/ECTA7880: it never raises the pinball loss summed over the levels.

    Raises:
        ValueError: wrong levels or shape, or a value that is NaN or infinite.
    """
    quantiles = pipeline(contexts, horizon, levels)
    own = [float(level) for level in quantiles.levels]
    if len(own) < min(2, len(levels)) or not all(0 < low < high < 1 for low, high in pairwise([*own, 1 - 1e-9])):
        raise ValueError(f"pretrained: a model needs two or more ascending levels between 0 and 1; got {own}")
    values = torch.as_tensor(quantiles.values).detach().cpu().double()
    expected = (len(contexts), horizon, len(own))
    if values.shape != expected:
        rule = f"quantiles (contexts, steps, levels) = {expected}"
        raise ValueError(f"pretrained: the model must return {rule}; got {tuple(values.shape)}")
    if not torch.isfinite(values).all():
        b, step, q = (~torch.isfinite(values)).nonzero()[0].tolist()
        raise ValueError(
            f"pretrained: the model must return finite quantiles; got {values[b, step, q].item()} in context {b} of "
            f"{len(contexts[b])} values at step {step + 1}, level {own[q]}"
        )
    return StepQuantiles(values.sort(-1).values, own)


def at_levels(quantiles: Tensor, known: Levels, levels: Levels) -> Tensor:  # (..., K) -> (..., Q)
    """Quantiles at other levels, linear in the normal score of the level.

    Between two known levels the quantile is on the straight line between them, and beyond the outermost level on the
    line through the two outermost: exact for a normal distribution, and a normal tail for any other.

    >>> at_levels(torch.tensor([-1.2816, 0.0, 1.2816]), [0.1, 0.5, 0.9], [0.05, 0.5, 0.95])
    tensor([-1.6449,  0.0000,  1.6449])
    """
    if list(known) == list(levels):
        return quantiles
    scores, knots = (torch.special.ndtri(torch.tensor(list(x), dtype=torch.double)) for x in (levels, known))
    right = torch.searchsorted(knots, scores).clamp(1, len(known) - 1)
    weight = ((scores - knots[right - 1]) / (knots[right] - knots[right - 1])).to(quantiles)
    return torch.lerp(quantiles[..., right - 1], quantiles[..., right], weight)


def _chronos(pipeline: Any, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    # Chronos samples and takes any level; Bolt and Chronos-2 repeat their outermost level beyond it, so ask for theirs
    own = list(getattr(pipeline, "quantiles", levels))
    # by position: the argument was `context` in version 1
    values, _ = pipeline.predict_quantiles(contexts, prediction_length=horizon, quantile_levels=own)
    return StepQuantiles(torch.cat(list(values)) if isinstance(values, list) else values, own)


def _timesfm(pipeline: Any, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    _, values = pipeline.forecast(horizon=horizon, inputs=[context.numpy() for context in contexts])
    return StepQuantiles(values[..., 1:], DECILES)  # the mean comes first


def _timesfm3(pipeline: Any, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    inputs = [context.numpy() for context in contexts]
    outputs = pipeline.predict_batch(contexts=inputs, horizon=horizon, return_quantiles=True)
    values = torch.stack([torch.as_tensor(output.quantiles) for output in outputs])
    return StepQuantiles(values, pipeline.config.quantiles)


def _tirex(pipeline: Any, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    # version 1.0 has an argument `quantile_levels` that does not reach the model
    values, _ = pipeline.forecast(contexts, prediction_length=horizon)
    return StepQuantiles(values, DECILES)


def _tirex2(pipeline: Any, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    # stands in for tirex2.TimeseriesType, of which the model reads these three fields
    series = [SimpleNamespace(target=x[None], past_covariates=None, future_covariates=None) for x in contexts]
    values = torch.cat(list(pipeline.forecast(series, prediction_length=horizon)))  # (B, Q, horizon)
    levels = [round(float(level), 6) for level in pipeline.quantiles]  # a buffer in float32
    return StepQuantiles(values.movedim(1, 2), levels)


def _function(pipeline: QuantilePipeline, contexts: Contexts, horizon: int, levels: Levels) -> StepQuantiles:
    return StepQuantiles(pipeline(contexts, horizon, levels), levels)
