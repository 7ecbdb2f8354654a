"""Covariates of a fitted forecaster: inputs of its model, and what a forecast says about them."""

from typing import TYPE_CHECKING

from torchcommodity.data import Covariates, CovariateSpec, Finding, Panel
from torchcommodity.training import ModelInputs, VarianceSource, covariate_variances, model_inputs

if TYPE_CHECKING:
    from torchcommodity.forecast._forecaster import Forecaster


def forecaster_inputs(
    operation: str, forecaster: "Forecaster", panel: Panel, covariates: VarianceSource | None
) -> ModelInputs:
    """Inputs of the model of a forecaster from an aligned panel.

    Raises:
        ValueError: the fit had covariates that are missing or have another transform, or had none.
    """
    specs = {spec.name: spec for spec in covariate_specs(covariates)}
    for record in forecaster.record.covariates:
        spec = specs.get(record.name, record)
        if spec.transform != record.transform:
            raise ValueError(
                f"{operation}: covariate {record.name} must have the transform of the fit, {record.transform!r}; got "
                f"{spec.transform!r}"
            )
    har = forecaster.model.har.config
    return model_inputs(panel, har.horizons[-1], covariate_variances(operation, panel, har, covariates))


def covariate_specs(covariates: VarianceSource | None) -> tuple[CovariateSpec, ...]:
    """What the record of a fit has of its covariates; nothing of an object of the user's own class."""
    return covariates.specs if isinstance(covariates, Covariates) else ()


def covariate_findings(covariates: VarianceSource | None, panel: Panel) -> tuple[Finding, ...]:
    """A finding for each covariate that is too old on the last row of a panel."""
    return covariates.findings(panel.dates[-1]) if isinstance(covariates, Covariates) else ()
