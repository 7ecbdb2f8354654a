"""Graph of a forecaster from raw prices and dates to quantiles."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.utils import parametrize

from torchcommodity.export._columns import ColumnLayout
from torchcommodity.export._roll_months import RollMonths, calendar_range, day_range
from torchcommodity.forecast import Forecaster
from torchcommodity.models import ModelInputs


class RawPriceForecaster(nn.Module):
    """The forecaster's model with its roll months: prices (B, T, C) and days (B, T) to quantiles (B, H, N, Q).

    The columns are the N symbols of the forecaster, its R references, the closes of the curves of its spot prices, and
    the bars of its ranges, see `Metadata.columns`.
    The result equals that of `forecast.predict` bit for bit, because both call the same model with the same rolls.
    """

    bar_fields: Tensor  # (3 N,) columns of open, high and low of each symbol

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()
        if forecaster.record.own_rolls:
            raise ValueError(
                "export: the forecaster was fitted on series that roll on other days than by the rule of the exchange, "
                "which is all that an artifact knows; fit it on prices that roll at expiry (--roll expiry)"
            )
        self.model = _freeze_constraints(forecaster.model.eval())
        has_rolls = any(forecaster.contracts)
        if has_rolls and forecaster.frequency != "daily":
            raise ValueError(
                f"export: a forecaster of {forecaster.frequency} prices must have no contracts, because the roll "
                f"calendar of the graph counts trading days; got {', '.join(filter(None, forecaster.contracts))}"
            )
        self.calendar = RollMonths(forecaster.contracts, forecaster.horizons[-1]) if has_rolls else None
        names = forecaster.symbols, forecaster.references, forecaster.curve_of, close_names(forecaster)
        self.columns = ColumnLayout.of(*names, forecaster.ranges, forecaster.model.har.config.bars)
        self.day_range = day_range(calendar_range(forecaster.contracts))

    def forward(self, prices: Tensor, days: Tensor) -> Tensor:  # (B, T, C), (B, T) int64 -> (B, H, N, Q)
        first, last = self.day_range
        rolls = None if self.calendar is None else self.calendar(days.clamp(first, last))
        own = self.columns.split(prices)
        quantiles: Tensor = self.model(own.symbols, rolls, own.curve, None, own.references, days, own.bars)
        # `Artifact` raises an error for these inputs; a program that calls the graph itself must not get numbers
        valid = (days.diff(dim=1) > 0).all(1) & (days[:, 0] >= first) & (days[:, -1] <= last)
        valid = valid & ~prices.isinf().flatten(1).any(1)
        return torch.where(valid[:, None, None, None], quantiles, torch.nan)

    def sample_inputs(self, batch: int, rows: int) -> tuple[Tensor, Tensor]:
        """Prices and days to trace and compare graphs, see `sample_inputs`."""
        return sample_inputs(self.columns.columns, batch, rows)

    def sample_history(self, rows: int) -> ModelInputs:
        """The same as inputs of the model, without a batch axis and rolls."""
        prices, days = self.sample_inputs(1, rows)
        own = self.columns.split(prices)
        inputs = ModelInputs(own.symbols, None, own.curve, None, own.references, days, own.bars)
        return inputs.map(lambda x: x[0])


def sample_inputs(columns: int, batch: int, rows: int) -> tuple[Tensor, Tensor]:
    """Prices of a regular wave (B, T, C), and days (B, T) from 2020-01-01 on."""
    phase = torch.arange(batch * rows * columns, dtype=torch.double).reshape(batch, rows, columns)
    return 50 + 5 * torch.sin(phase), torch.arange(18262, 18262 + rows).repeat(batch, 1)


def close_names(forecaster: Forecaster) -> tuple[str, ...]:
    """Names of the closes that the curves of its spot prices need, `CL 1` the front contract of CL."""
    location = forecaster.model.har.location
    return () if location is None or location.basis is None else location.basis.closes


def _freeze_constraints(model: nn.Module) -> nn.Module:
    """Copy of a model with the values of constrained parameters: no graph has to compute a matrix exponential."""
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        if not parametrize.is_parametrized(module):
            continue
        parametrizations: nn.ModuleDict = module.parametrizations  # type: ignore[assignment]
        if any(x.dtype == torch.int8 for x in parametrizations.state_dict().values()):
            continue  # of `optimize.quantize`: its integers are smaller than their values
        # not remove_parametrizations: it deletes an attribute of the class, which the copy shares with the original
        values = {name: getattr(module, name).detach() for name in parametrizations}
        module.__class__ = parametrize.type_before_parametrizations(module)
        del module.parametrizations
        for name, value in values.items():
            module.register_buffer(name, value)
    return model


@contextmanager
def _unchecked() -> Iterator[None]:
    """Distributions do not check their arguments: Python would have to read values of a graph."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def trace(graph: RawPriceForecaster, min_rows: int) -> torch.export.ExportedProgram:
    """Graph of ATen and `commodity` operators, for any batch size and at least `min_rows` rows."""
    dynamic = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=min_rows)}
    # a distribution of torch turns gradients on: in a graph without them that would be one more operator
    with torch.set_grad_enabled(graph.model.lookback is not None), _unchecked(), warnings.catch_warnings():
        # torch's recurrent layers list their weights once more, which its exporter takes for a change of the model
        warnings.filterwarnings("ignore", r"(?s).*_flat_weights", UserWarning)
        return torch.export.export(graph, graph.sample_inputs(2, min_rows + 1), dynamic_shapes=(dynamic, dynamic))
