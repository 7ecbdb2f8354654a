"""One forecast as a table, a JSON document and one self-contained HTML page."""

from torchcommodity.forecast.horizons import Calendar as Calendar
from torchcommodity.forecast.horizons import calendar as calendar
from torchcommodity.report.contents import Contents as Contents
from torchcommodity.report.contents import Run as Run
from torchcommodity.report.contents import to_csv as to_csv
from torchcommodity.report.contents import to_json as to_json
from torchcommodity.report.contents import versions as versions
from torchcommodity.report.evidence import Evidence as Evidence
from torchcommodity.report.evidence import summarise as summarise
from torchcommodity.report.page import to_html as to_html
from torchcommodity.report.scenarios import scenarios_html as scenarios_html
from torchcommodity.report.scenarios import verdict as verdict
from torchcommodity.report.write import check_folder as check_folder
from torchcommodity.report.write import write_together as write_together

__all__ = [
    "Calendar",
    "Contents",
    "Evidence",
    "Run",
    "calendar",
    "check_folder",
    "scenarios_html",
    "summarise",
    "to_csv",
    "to_html",
    "to_json",
    "verdict",
    "versions",
    "write_together",
]
