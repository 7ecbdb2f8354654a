"""One self-contained HTML page: no request leaves it, and nothing that came from data is taken for markup."""

import base64
import gzip
import json
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from torchcommodity.report import charts, sections
from torchcommodity.report.contents import Contents
from torchcommodity.report.correlation import correlation
from torchcommodity.report.markup import element, join

HERE = Path(__file__).parent
FANS = 40  # charts; a page with more is slow to open


def to_html(contents: Contents) -> str:
    """The report as one HTML page of about 2 MB, almost all of it the packed chart library."""
    together = correlation(contents.panel)
    figures: dict[str, Any] = {}
    fans = [f"fan-{n}" for n in range(len(contents.forecast.symbols))][:FANS]
    figures |= {name: charts.fan(contents, n) for n, name in enumerate(fans)}
    if contents.evidence:
        figures["calibration"] = charts.calibration(contents.evidence, contents.calendar)
    if together:
        figures["correlation"] = charts.correlation_path(together)
        figures["matrix"] = charts.correlation_map(together)
    parts = [
        sections.forecasts(contents, fans),
        sections.walk_forward(contents),
        sections.correlations(together),
        sections.data(contents),
        sections.reproduce(contents),
    ]
    page = Template((HERE / "page.html").read_text("utf-8"))
    return page.substitute(
        title=escape(sections.title(contents)),
        css=(HERE / "page.css").read_text("utf-8"),
        js=(HERE / "page.js").read_text("utf-8"),
        header=sections.header(contents),
        main=join(parts),
        footer=element(
            "p", f"Made by torchcommodity {contents.run.versions['torchcommodity']} at {contents.run.made}."
        ),
        figures=_script_json(figures),
        plotly=packed_plotly(),
        plotly_notice=f"{plotly_version()}, MIT licence, gzip in base64; unpacked by the script below",
    )


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def packed_plotly() -> str:
    """plotly.js, from 4.8 to 2 MB."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def plotly_version() -> str:
    """`plotly.js v4.1.1 ...` as the library names itself in its first lines."""
    line = next((line for line in get_plotlyjs()[:400].splitlines() if "plotly.js" in line), "plotly.js")
    return line.strip(" */").replace("--", "")
