"""Example of a request, made of real prices."""

from typing import Any

from torchcommodity.data import embedded, embedded_symbols
from torchcommodity.export import Metadata


def example_request(metadata: Metadata) -> dict[str, Any] | None:
    """Shortest request of the artifact's symbols, from the embedded prices; None unless they have all of the symbols.

    Args:
        metadata: of the artifact.
    """
    if metadata.frequency != "daily" or any(metadata.contracts) or not set(metadata.symbols) <= set(embedded_symbols()):
        return None
    panel = embedded(metadata.symbols)
    rows = panel.values.plain()[-metadata.min_rows :].tolist()
    prices = [[price if price == price else None for price in row] for row in rows]
    return {"instances": [{"prices": prices, "dates": list(map(str, panel.dates[-metadata.min_rows :]))}]}
