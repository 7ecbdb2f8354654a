"""Generated paths of joint log-returns, marked as synthetic."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from torchcommodity.data import SYNTHETIC, DataError, Panel, Provenance, SyntheticTensor, synthetic_symbol, utc_now

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Scenarios:
    """Generated log-returns of N symbols on P paths; rejected by training and scoring.

    Args:
        returns: (P, T, N) log-returns per row, float64.
        symbols: N symbols; the prefix `synthetic:` is added if missing.
        origin: how the paths were generated, in words.

    Example:
        >>> import torch
        >>> scenarios = Scenarios(SyntheticTensor(torch.zeros(2, 3, 1)), ("WTI",), "by hand")
        >>> scenarios
        Scenarios(2 paths of 3 rows; synthetic:WTI; by hand)
        >>> scenarios.to_pandas().iloc[0].to_dict()
        {'path': 1, 'row': 1, 'symbol': 'synthetic:WTI', 'log_return': 0.0, 'source': 'synthetic'}
    """

    returns: SyntheticTensor
    symbols: tuple[str, ...]
    origin: str

    synthetic = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "returns", SyntheticTensor(self.returns, origin=self.origin))
        object.__setattr__(self, "symbols", tuple(map(synthetic_symbol, self.symbols)))
        if self.returns.dim() != 3 or self.returns.shape[-1] != len(self.symbols):
            got = f"{tuple(self.returns.shape)} for {len(self.symbols)}"
            raise ValueError(f"Scenarios: returns must be (P, T, N) for N symbols; got {got}")

    def __len__(self) -> int:
        return int(self.returns.shape[0])

    def __repr__(self) -> str:
        paths = f"{len(self)} paths of {self.returns.shape[1]} rows"
        return f"Scenarios({paths}; {', '.join(self.symbols)}; {self.origin})"

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a long DataFrame: path and row (from 1), symbol, log_return, and source, always `synthetic`."""
        import pandas as pd

        path, row, n = (i.ravel() for i in np.indices(tuple(self.returns.shape)))
        table: pd.DataFrame = pd.DataFrame(
            {
                "path": path + 1,
                "row": row + 1,
                "symbol": np.array(self.symbols, dtype=object)[n],
                "log_return": self.returns.plain().numpy().ravel(),
                "source": SYNTHETIC,
            }
        )
        return table

    def to_panel(self, path: int, start: Panel) -> Panel:
        """Convert one path to prices on the business days after a real panel, starting at the last positive prices.

        The panel is marked as synthetic in its symbols and in the publisher of every column.

        Args:
            path: number of the path, from 0.
            start: real prices of the symbols.

        Raises:
            DataError: a symbol is missing from `start`, or has no positive price there.
        """
        real = start.select([symbol.removeprefix(f"{SYNTHETIC}:") for symbol in self.symbols])
        values = real.values.plain()
        valid = torch.isfinite(values) & (values > 0)
        if not bool(valid.any(0).all()):
            missing = ", ".join(symbol for symbol, any_valid in zip(real.symbols, valid.any(0)) if not any_valid)
            raise DataError(f"Scenarios.to_panel: every symbol must have a positive price; got none for {missing}")
        last = values.gather(0, (len(values) - 1 - valid.flip(0).int().argmax(0))[None])[0]
        rows = int(self.returns.shape[1])
        dates = np.busday_offset(real.dates[-1], np.arange(1, rows + 1), roll="backward")
        provenance = [Provenance(SYNTHETIC, self.origin, "none", utc_now(), "", symbol) for symbol in self.symbols]
        prices = last * self.returns[path].cumsum(0).exp()
        return Panel(prices, dates, self.symbols, real.units, tuple(provenance))  # type: ignore[arg-type]
