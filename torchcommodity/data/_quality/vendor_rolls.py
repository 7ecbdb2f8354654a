"""What is known of the rolls of a vendor's continuous series, by the form of its symbols."""

import re
from collections.abc import Iterator

from torchcommodity.data._core.contract_codes import find_product
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.panel import Panel

YAHOO = re.compile(r"(?P<root>[A-Z0-9]{1,4})=F")


def vendor_rolls(panel: Panel) -> Iterator[Finding]:
    """A finding for each series of Yahoo that has no delivery months: the rule of its rolls is not published."""
    for n, symbol in enumerate(panel.symbols):
        if panel.deliveries is not None or not (match := YAHOO.fullmatch(symbol)):
            continue
        product = panel.contracts[n] or find_product(match["root"])
        hint = f"; --contracts {symbol}={product} assumes the exchange's expiry" if product else ""
        value = f"Yahoo's front month, not adjusted; it rolls on or near expiry by a rule that is not published{hint}"
        yield make_finding("vendor rolls", symbol, value=value)
