"""Covariates of a fit: the extra variance terms that they add to the model, from what was known at each row."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from torch_opkit.arguments import current_operation
from torchcommodity.data import Panel, summarize_names
from torchcommodity.models import HarConfig
from torchcommodity.training._config import FitConfig


@runtime_checkable
class VarianceSource(Protocol):
    """What provides extra variance terms: `data.Covariates`, or an object of the user with the same three names.

    Row t of `variances` may depend on nothing that was not known at row t.
    """

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the X terms."""

    @property
    def ratios(self) -> tuple[str, ...]:
        """Names of the terms that are multiples of the symbol's slow variance; the others are variances per row."""

    def variances(self, panel: Panel, horizons: Sequence[int]) -> Tensor:
        """The terms (T, H, N, X) of the rows of a panel; NaN = no information."""


def add_extra_terms(config: FitConfig, covariates: VarianceSource | None) -> FitConfig:
    """The config with the terms of the covariates.

    Args:
        config: settings of a fit.
        covariates: None = the config must have no extra terms.

    Raises:
        TypeError: the covariates are another object, such as a frame.
        ValueError: the config has extra terms and there are no covariates, or a name is that of another term.
    """
    har = config.model.har
    if covariates is None:
        check_no_extra_terms(har, "pass covariates=, or a config without extra_terms")
        return config
    _check_source(covariates)
    har = replace(har, extra_terms=tuple(covariates.terms), extra_ratios=tuple(covariates.ratios))
    return replace(config, model=replace(config.model, har=har))


def covariate_variances(
    panel: Panel, har: HarConfig, covariates: VarianceSource | None
) -> Tensor | None:  # (T, H, N, X)
    """The extra variances of a panel in the order of `har.extra_terms`; None if the model has none.

    Raises:
        TypeError: the covariates are another object, such as a frame.
        ValueError: the model has extra terms and there are no covariates of these names; they have another shape.
    """
    if not har.extra_terms and covariates is None:
        return None
    if covariates is not None:
        _check_source(covariates)
    names = () if covariates is None else covariates.terms
    if not har.extra_terms:
        raise ValueError(f"{current_operation()}: the fit had no covariates; got {summarize_names(names)}; pass none")
    if covariates is None or not set(har.extra_terms) <= set(names):
        got = summarize_names(names) or "none; pass covariates= (--covariates)"
        expected = summarize_names(har.extra_terms)
        raise ValueError(f"{current_operation()}: covariates must be those of the fit, {expected}; got {got}")
    values = covariates.variances(panel, har.horizons)
    expected_shape = (len(panel), len(har.horizons), len(panel.symbols), len(names))
    if tuple(values.shape) != expected_shape or not values.is_floating_point():
        got = f"{tuple(values.shape)} of {values.dtype}"
        raise ValueError(
            f"{current_operation()}: variances of covariates must be (T, H, N, X) = {expected_shape}; got {got}"
        )
    if (values < 0).any() or values.isinf().any():
        raise ValueError(
            f"{current_operation()}: variances of covariates must be finite, not negative, or NaN; got others"
        )
    if empty := [name for name, x in zip(names, values.unbind(-1)) if name in har.extra_terms and x.isnan().all()]:
        span = f"{panel.dates[0]} to {panel.dates[-1]}"
        raise ValueError(
            f"{current_operation()}: covariates must have values for {span}; got none of {summarize_names(empty)}"
        )
    return values.to(torch.float64)[..., [names.index(name) for name in har.extra_terms]]


def _check_source(covariates: Any) -> None:
    if not isinstance(covariates, VarianceSource):
        rule = "covariates must be Covariates, such as data.to_covariates(frame, lag='7D')"
        raise TypeError(f"{current_operation()}: {rule}; got {type(covariates).__name__}")


def without_extra_terms(har: HarConfig) -> HarConfig:
    """The same settings for a model without covariates."""
    return replace(har, extra_terms=(), extra_ratios=())


def check_no_extra_terms(har: HarConfig, remedy: str) -> None:
    """Raise ValueError if a model has extra variance terms, which the operation cannot provide."""
    if har.extra_terms:
        names = summarize_names(har.extra_terms)
        raise ValueError(f"{current_operation()}: the model must have no covariates; got {names}; {remedy}")
