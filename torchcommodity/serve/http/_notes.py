"""What is doubtful about the prices of a request: findings of `data check`, prices unlike those of training, age."""

from datetime import datetime, timezone
from typing import Any

import numpy as np

from torchcommodity.data import Finding, inspect_prices
from torchcommodity.export import Metadata
from torchcommodity.forecast import STALE_DAYS
from torchcommodity.serve.http._messages import PriceWindow


def window_findings(metadata: Metadata, window: PriceWindow) -> tuple[Finding, ...]:
    """Findings of one instance, in 0.2 ms for 1,000 prices and in 1 ms for 10,000.

    Args:
        metadata: of the artifact; one of an earlier version has no training prices to compare with.
        window: the prices of the instance.
    """
    dates, frequency = window.days.astype("datetime64[D]"), metadata.frequency
    findings = inspect_prices(
        window.prices, dates, metadata.symbols, frequency=frequency, training=metadata.training_prices
    )
    age = int((np.datetime64(datetime.now(timezone.utc).date(), "D") - dates[-1]).astype(np.int64))
    if age > STALE_DAYS[frequency]:
        findings += (Finding("old prices", "", str(dates[-1]), 0, f"the last row is {age:,} days old", "kept"),)
    return findings


def note(finding: Finding) -> str:
    """One sentence about a finding.

    >>> note(Finding("jump", "WTI", "2018-12-31", 0, "4515 after 45.15", "kept"))
    'WTI: jump on 2018-12-31: 4515 after 45.15'
    """
    symbol = f"{finding.symbol}: " if finding.symbol else ""
    date = f" on {finding.date}" if finding.date else ""
    times = f", {finding.count:,} times" if finding.count > 1 else ""
    return f"{symbol}{finding.kind}{date}: {finding.value}{times}"


def finding_document(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "kind": finding.kind,
        "symbol": finding.symbol or None,
        "date": finding.date or None,
        "value": finding.value,
        "count": finding.count,
    }
