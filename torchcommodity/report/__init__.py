"""One forecast as a table, a JSON document and one self-contained HTML page."""

from torchcommodity.report._blocks import price as price
from torchcommodity.report._contents import Contents as Contents
from torchcommodity.report._contents import Run as Run
from torchcommodity.report._contents import to_csv as to_csv
from torchcommodity.report._contents import to_json as to_json
from torchcommodity.report._contents import versions as versions
from torchcommodity.report._evidence import Evidence as Evidence
from torchcommodity.report._evidence import describe_score as describe_score
from torchcommodity.report._evidence import summarize as summarize
from torchcommodity.report._evidence import tally as tally
from torchcommodity.report._page import to_html as to_html
from torchcommodity.report._portfolio import PortfolioContents as PortfolioContents
from torchcommodity.report._portfolio import describe_results as describe_results
from torchcommodity.report._portfolio import portfolio_days as portfolio_days
from torchcommodity.report._portfolio import portfolio_html as portfolio_html
from torchcommodity.report._portfolio import portfolio_table as portfolio_table
from torchcommodity.report._portfolio import portfolio_weights as portfolio_weights
from torchcommodity.report._portfolio import row as row
from torchcommodity.report._scenarios import describe_evaluation as describe_evaluation
from torchcommodity.report._scenarios import scenarios_html as scenarios_html
from torchcommodity.report._sections import calendars as calendars
from torchcommodity.report._write import check_folder as check_folder
from torchcommodity.report._write import write_together as write_together

__all__ = [
    "Contents",
    "Evidence",
    "PortfolioContents",
    "Run",
    "calendars",
    "check_folder",
    "describe_evaluation",
    "describe_results",
    "describe_score",
    "portfolio_days",
    "portfolio_html",
    "portfolio_table",
    "portfolio_weights",
    "price",
    "row",
    "scenarios_html",
    "summarize",
    "tally",
    "to_csv",
    "to_html",
    "to_json",
    "versions",
    "write_together",
]
