"""What only a forecaster with a `HarLstm` can do: read fewer features or rows."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstm, build_model
from torchcommodity.opkit.arguments import current_operation, raise_invalid
from torchcommodity.training import check_no_extra_terms


def require_har_lstm(forecaster: Any) -> HarLstm:
    """Return the forecaster's model, or raise if it is no forecaster, or none with a `HarLstm`."""
    if not isinstance(forecaster, Forecaster):
        rule = "forecaster must be a Forecaster: its features and past rows are those of prices"
        raise_invalid(current_operation(), rule, TypeError, forecaster=type(forecaster).__name__)
    if not isinstance(forecaster.model, HarLstm):
        raise_invalid(current_operation(), "forecaster must have a HarLstm", model=type(forecaster.model).__name__)
    check_no_extra_terms(forecaster.model.har.config, "fit the forecaster without them")
    return forecaster.model


def rebuild(model: HarLstm, state: dict[str, Tensor], **changes: Any) -> HarLstm:
    """Build a `HarLstm` with changed settings and the given state."""
    rebuilt = build_model(replace(model.config, **changes), model.har.assets)
    assert isinstance(rebuilt, HarLstm)
    rebuilt.load_state_dict(state)
    return rebuilt.eval()
