"""Self-contained HTML page: no requests, all text from data is escaped."""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from torchcommodity._extras import extra
from torchcommodity.charts import PALETTE, Chart, palette_css
from torchcommodity.data import frame_to_csv
from torchcommodity.forecast import correlation, fan_chart
from torchcommodity.report import _sections as sections
from torchcommodity.report._markup import Markup, join, paragraph
from torchcommodity.report._report_data import ReportData, RunRecord
from torchcommodity.report._section_backtest import backtest_section, calibration_chart, pit_chart
from torchcommodity.report._section_correlation import correlation_chart, correlation_heatmap, correlation_section
from torchcommodity.report._section_forecast import forecast_section
from torchcommodity.report._section_outlook import outlook_section

FOLDER = Path(__file__).parent
MAX_CHARTS = 40  # more would make the page slow to open
FILES = "forecast.csv has all quantiles; forecast.json adds provenance, data problems and scores."


def to_html(report: ReportData) -> str:
    """The report as one HTML page of about 2 MB, almost all of it the compressed chart library."""
    correlations, outlook = correlation(report.panel, report.forecast.scale), report.outlook
    charts = min(MAX_CHARTS, len(report.forecast.symbols))
    parts = (
        outlook_section(outlook),
        forecast_section(report, outlook, charts),
        backtest_section(report),
        correlation_section(correlations),
        sections.about_section(report, FILES),
    )
    figures = {f"chart-fan-{n}": fan_chart(report.forecast, n) for n in range(charts)}
    if report.backtest:
        figures["chart-calibration"] = calibration_chart(report.backtest, report.forecast.calendar)
        figures["chart-pit"] = pit_chart(report.backtest, report.forecast.calendar)
    if correlations:
        figures["chart-correlation"] = correlation_chart(correlations)
        figures["chart-matrix"] = correlation_heatmap(correlations)
    tables = {"outlook": frame_to_csv(outlook.to_pandas())}
    return page(sections.title(report), sections.header(report, outlook), parts, figures, report.run, tables)


def page(
    title: str,
    header: Markup,
    parts: Iterable[Markup],
    figures: Mapping[str, Chart],
    run: RunRecord,
    tables: Mapping[str, str] | None = None,
) -> str:
    """A page with its style, script and chart library.

    Args:
        title: of the browser's tab.
        header: above the sections.
        parts: sections.
        figures: id of a placeholder -> its chart.
        run: record of the run.
        tables: id of a section -> CSV text that a button saves.
    """
    version = paragraph(f"torchcommodity {run.versions['torchcommodity']}, {run.created}")
    return Template(_text("page.html")).substitute(
        title=escape(title),
        css=palette_css() + _text("page.css"),
        js=_text("page.js"),
        header=header,
        main=join(parts),
        footer=join([*map(paragraph, run.credits), version]),
        figures=_script_json(figures),
        palette=_script_json(PALETTE),
        tables=_script_json(tables or {}),
        plotly=compressed_plotly(),
        plotly_notice=f"{plotly_version()}, MIT license; gzip in base64, decompressed by the script below",
    )


def _text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def _script_json(value: Any) -> str:
    """JSON that cannot close the script element around it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def compressed_plotly() -> str:
    """plotly.js, compressed from 4.8 to 2 MB."""
    return base64.b64encode(gzip.compress(_plotly_js().encode(), 9, mtime=0)).decode()


def plotly_version() -> str:
    """`plotly.js v4.1.1`, from the first lines of the library."""
    line = next((line for line in _plotly_js()[:400].splitlines() if "plotly.js" in line), "plotly.js")
    return line.strip(" */").replace("--", "")


def _plotly_js() -> str:
    with extra("forecast"):
        from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script
