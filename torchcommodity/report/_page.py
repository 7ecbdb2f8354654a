"""One self-contained HTML page: no request leaves it, and nothing that came from data is taken for markup."""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from torchcommodity.forecast import Correlation, correlation
from torchcommodity.report import _charts as charts
from torchcommodity.report import _sections as sections
from torchcommodity.report._blocks import paragraph
from torchcommodity.report._contents import Contents, Run
from torchcommodity.report._markup import Markup, join
from torchcommodity.report._section_correlation import correlations
from torchcommodity.report._section_evidence import walk_forward
from torchcommodity.report._section_forecast import forecasts

FOLDER = Path(__file__).parent
FANS = 40  # charts; a page with more is slow to open
FILES = "All quantiles are in forecast.csv; with provenance, findings and scores in forecast.json."


def to_html(contents: Contents) -> str:
    """The report as one HTML page of about 2 MB, almost all of it the packed chart library."""
    together = correlation(contents.panel)
    fans = min(FANS, len(contents.forecast.symbols))
    parts = (
        forecasts(contents, fans),
        walk_forward(contents),
        correlations(together),
        sections.data(contents.panel, contents.findings, contents.run),
        sections.reproduce(contents.run, FILES),
    )
    figures = _figures(contents, together, fans)
    return whole_page(sections.title(contents), sections.header(contents), parts, figures, contents.run)


def whole_page(
    title: str, header: Markup, parts: Iterable[Markup], figures: Mapping[str, charts.Figure], run: Run
) -> str:
    """A page of its own: style, script and chart library are inside; `figures` go where `blocks.figure` left room."""
    return Template(_text("page.html")).substitute(
        title=escape(title),
        css=_text("page.css"),
        js=_text("page.js"),
        header=header,
        main=join(parts),
        footer=paragraph(f"torchcommodity {run.versions['torchcommodity']}, {run.made}"),
        figures=_script_json(figures),
        plotly=packed_plotly(),
        plotly_notice=f"{plotly_version()}, MIT license; gzip in base64, unpacked by the script below",
    )


def _figures(contents: Contents, together: Correlation | None, fans: int) -> dict[str, charts.Figure]:
    figures = {f"chart-fan-{n}": charts.fan(contents, n) for n in range(fans)}
    if contents.evidence:
        figures["chart-calibration"] = charts.calibration(contents.evidence, contents.calendar)
    if together:
        figures["chart-correlation"] = charts.correlation_path(together)
        figures["chart-matrix"] = charts.correlation_map(together)
    return figures


def _text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def packed_plotly() -> str:
    """plotly.js, packed from 4.8 to 2 MB."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def plotly_version() -> str:
    """`plotly.js v4.1.1`, as the library names itself in its first lines."""
    line = next((line for line in get_plotlyjs()[:400].splitlines() if "plotly.js" in line), "plotly.js")
    return line.strip(" */").replace("--", "")
