"""A block of panels is answered: panels of equal length together where that changes no bit, else one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from torchcommodity.batch._requests import Refused, Request
from torchcommodity.export import Artifact
from torchcommodity.forecast import last_prices

BLOCK = 131_072  # rows of the table, or the rows of one panel: what is answered and written in one transaction
CELLS = 65_536  # prices in one call
# The graph is one operation after the other on each panel's own numbers. A network multiplies matrices, and the last
# bits of such a product depend on the other rows; an aoti or onnx file may do the same with any graph.
BITS_OF_EACH = {("har-garch", "pt2")}


def together(artifact: Artifact, rows: int) -> int:
    """How many panels of so many rows are asked in one call."""
    if (artifact.metadata.model, artifact.metadata.format) not in BITS_OF_EACH:
        return 1
    return max(1, CELLS // (rows * len(artifact.metadata.symbols)))


def groups(lengths: Iterable[int], most: Callable[[int], int]) -> Iterator[list[int]]:
    """The places of equal lengths in groups of at most `most(length)`; every place once.

    >>> list(groups([3, 5, 3, 3], lambda length: 2))
    [[0, 2], [3], [1]]
    """
    alike: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        alike.setdefault(length, []).append(place)
    for length, places in alike.items():
        size = most(length)
        yield from (places[k : k + size] for k in range(0, len(places), size))


def answers(artifact: Artifact, block: Sequence[Request]) -> tuple[Any, list[Refused]]:
    """The forecasts of a block as a table in the order of its panels, and the panels whose forecast is no number."""
    found: dict[int, Any] = {}
    for places in groups((len(each.days) for each in block), lambda rows: together(artifact, rows)):
        prices = torch.from_numpy(np.stack([block[k].prices for k in places]))
        days = torch.from_numpy(np.stack([block[k].days for k in places]))
        found |= zip(places, artifact(prices, days))
    fine = [k for k in range(len(block)) if found[k].isfinite().all()]
    refused = [Refused(block[k].panel, _why_not(artifact, found[k])) for k in range(len(block)) if k not in set(fine)]
    return _table(artifact, [block[k] for k in fine], [found[k] for k in fine]), refused


def _why_not(artifact: Artifact, quantiles: torch.Tensor) -> str:
    symbols = [s for s, x in zip(artifact.metadata.symbols, quantiles.transpose(0, 1)) if not x.isfinite().all()]
    return f"expected more than {artifact.metadata.warmup} returns of every symbol; got too few of {', '.join(symbols)}"


def _table(artifact: Artifact, requests: list[Request], quantiles: list[torch.Tensor]) -> Any:
    about = artifact.metadata
    H, N, Q = len(about.horizons), len(about.symbols), len(about.levels)
    starts = [last_prices(torch.from_numpy(each.prices)) for each in requests]
    days = np.array([each.days[row.numpy()] for each, (row, _) in zip(requests, starts)]).reshape(-1, N)
    last = np.array([price.numpy() for _, price in starts]).reshape(-1, N)
    returns = torch.stack(quantiles).transpose(1, 2) if quantiles else torch.zeros(0, N, H, Q)
    panel, symbol, horizon, level = (place.ravel() for place in np.indices((len(requests), N, H, Q)))
    first = last[panel, symbol]
    log_return = returns.reshape(-1)
    return pa.table(
        {
            "panel": pa.array([each.panel for each in requests], pa.string()).take(pa.array(panel)),
            "symbol": pa.array(about.symbols, pa.string()).take(pa.array(symbol)),
            "date": pa.array(days[panel, symbol].astype(np.int32), pa.int32()).cast(pa.date32()),
            "last": first,
            "horizon": np.array(about.horizons, dtype=np.int32)[horizon],
            "level": np.array(about.levels)[level],
            "log_return": log_return.numpy(),
            "price": (torch.from_numpy(first) * log_return.exp()).numpy(),
        }
    )
