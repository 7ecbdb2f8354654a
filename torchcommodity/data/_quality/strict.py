"""What a fit says of doubtful prices: a warning, or in strict mode an error."""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torchcommodity.data._core.errors import TREATMENTS, DataError, DataWarning, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.panel_fields import is_generated
from torchcommodity.data._core.provenance import NOT_STATED, check_several
from torchcommodity.opkit.arguments import current_operation

STRICT = "TORCHCOMMODITY_STRICT"  # environment variable
ACCEPTED = "accepted"
ORIGIN = "origin not stated"
SHIPPED = "torchcommodity/data/open_prices/"  # location of the embedded prices, whose findings are known


def accept_findings(panel: Panel, kinds: Iterable[str]) -> Panel:
    """The panel with its findings of some kinds accepted: somebody looked at them, and the prices are right.

    They stay among the findings, and neither a warning nor strict mode counts them.

    Args:
        panel: prices.
        kinds: of `Finding.kind`, such as "gap" and "stale".

    Raises:
        DataError: an unknown kind.

    >>> from torchcommodity import data
    >>> print(*accept_findings(data.embedded(["WTI"]), ["nonpositive"]).findings)
    nonpositive WTI 2020-04-20: -36.98 (accepted)
    """
    check_several("accept_findings", kinds)
    kinds = set(kinds)
    if unknown := sorted(kinds - {*TREATMENTS}):
        known = summarize_names(sorted({finding.kind for finding in panel.findings}), limit=20)
        raise DataError(f"accept: expected kinds of findings, such as {known or 'gap'}; got {summarize_names(unknown)}")
    findings = (replace(f, treatment=ACCEPTED) if f.kind in kinds else f for f in panel.findings)
    return replace(panel, findings=tuple(findings))


def check_doubts(panel: Panel, strict: bool | None = None) -> None:
    """Warn of prices of unstated origin and of findings that were not accepted; in strict mode refuse them.

    Args:
        panel: prices. The embedded ones give no warning: their findings are known.
        strict: whether doubtful and generated prices are an error; None: if the environment variable
            `TORCHCOMMODITY_STRICT` is set to anything but 0.

    Raises:
        DataError: strict mode, and prices without a publisher, of a generated origin, or with a finding that was not
            accepted.

    >>> from torchcommodity import data
    >>> check_doubts(data.embedded(["WTI"]), strict=True)
    Traceback (most recent call last):
    torchcommodity.data.DataError: strict: expected prices without findings but accepted ones; got 1 nonpositive
    """
    generated = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if is_generated(symbol, record)]
    unstated = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if not record.is_stated]
    open_findings = [f for f in panel.findings if f.treatment != ACCEPTED and f.kind != ORIGIN]
    counts: Counter[str] = Counter()
    for finding in open_findings:
        counts[finding.kind] += finding.count
    kinds = summarize_names([f"{count:,} {kind}" for kind, count in counts.most_common()], limit=5)
    name = current_operation("strict")
    if is_strict(strict):
        if generated:
            raise DataError(f"{name}: expected prices of a market; got generated ones of {summarize_names(generated)}")
        if unstated:
            rule = "expected prices with a publisher (publisher=, --publisher, or a column source)"
            raise DataError(f"{name}: {rule}; got none for {summarize_names(unstated)}")
        if counts:
            raise DataError(f"{name}: expected prices without findings but accepted ones; got {kinds}")
    elif (unstated or counts) and not all(record.location.startswith(SHIPPED) for record in panel.provenance):
        origin = f"nobody states where the prices of {summarize_names(unstated)} come from" if unstated else ""
        findings = f"findings: {kinds} (see Panel.findings)" if counts else ""
        words = "; ".join(filter(None, (origin, findings)))
        warnings.warn(f"{name}: {words}; strict=True refuses such prices", DataWarning, stacklevel=_caller())


def check_publishers(name: str, sources: Iterable[Mapping[str, str]]) -> None:
    """Raise a `DataError` if training prices have no publisher, as `Panel.sources` recorded them.

    >>> from torchcommodity import data
    >>> check_publishers("export", data.embedded().sources())
    """
    unstated = [source["symbol"] for source in sources if source["publisher"] == NOT_STATED]
    if unstated:
        rule = "strict mode expects a model of prices with a publisher"
        raise DataError(f"{name}: {rule}; got none for {summarize_names(unstated)}")


def is_strict(strict: bool | None) -> bool:
    """The argument, or what the environment says.

    >>> is_strict(True), is_strict(None)
    (True, False)
    """
    return os.environ.get(STRICT, "0") not in ("", "0") if strict is None else strict


def _caller() -> int:
    """Level of the first frame outside of the package, for the function that calls this one."""
    package, level, frame = str(Path(__file__).parents[2]), 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((package, os.path.dirname(os.__file__))):
        frame, level = frame.f_back, level + 1
    return level + 1
