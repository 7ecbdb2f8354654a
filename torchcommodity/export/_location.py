"""What an artifact records of its forecaster to say what moves a median: a graph returns the sum only."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchcommodity.forecast import COEFFICIENTS, PAIRS, ROWS, check_pairs
from torchcommodity.models import Har, HarConfig, model_config

BASIS_ROWS, REVERSION_ROWS = "location.basis.rows", "location.reversion.rows"


@dataclass(frozen=True)
class LocationRecord:
    """Settings of a forecaster's `Har`, and the coefficients of its location.

    Args:
        config: the settings.
        state: tensor of `location` and `theta`, by name in the state of `Har`, as nested lists.
    """

    config: HarConfig
    state: dict[str, Any]

    @classmethod
    def from_har(cls, har: Har) -> "LocationRecord":
        """The record of a calibrated `Har`."""
        state = har.state_dict().items()
        return cls(
            har.config, {name: x.tolist() for name, x in state if name == "theta" or name.startswith("location.")}
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any], symbols: int, scale: Tensor | None = None) -> "LocationRecord":
        """The record from `dataclasses.asdict` or JSON, for symbols with a price scale (N,) or None.

        Raises:
            ValueError, TypeError, KeyError: other content, or that of another number of symbols.
        """
        record = cls(model_config("har-garch", {"har": values["config"]}).har, values["state"])
        record.to_har(symbols, scale)
        return record

    def to_har(self, symbols: int, scale: Tensor | None = None) -> Har:
        """`Har` with the location of the record and this price scale, and without calibrated variances.

        Raises:
            ValueError: the tensors are not those of such a `Har`.
        """
        har, integers = Har(symbols, self.config), (PAIRS, ROWS, BASIS_ROWS, REVERSION_ROWS)
        har.set_price_scale(scale)
        state = {
            name: torch.tensor(x, dtype=torch.long if name in integers else torch.double)
            for name, x in self.state.items()
        }
        if PAIRS in state:
            check_pairs(state, symbols, self.config)
        expected = {*LocationRecord.from_har(har).state, *(state.keys() & {PAIRS, COEFFICIENTS, ROWS})}
        if state.keys() != expected or not all(x.isfinite().all() for x in state.values()):
            raise ValueError(f"location: state must have finite {', '.join(sorted(expected))}; got {', '.join(state)}")
        try:
            har.load_state_dict(state, strict=False)
        except RuntimeError as error:  # a shape
            raise ValueError(f"location: {error}") from None
        return har
