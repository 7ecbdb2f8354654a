"""A forecast, a portfolio or scenarios as tables, JSON and one self-contained HTML page."""

from torchcommodity.report._comparisons import describe_comparison as describe_comparison
from torchcommodity.report._comparisons import describe_scores as describe_scores
from torchcommodity.report._documents import check_output_folder as check_output_folder
from torchcommodity.report._documents import to_csv as to_csv
from torchcommodity.report._documents import to_json as to_json
from torchcommodity.report._documents import write_files as write_files
from torchcommodity.report._page import to_html as to_html
from torchcommodity.report._portfolio import PortfolioReportData as PortfolioReportData
from torchcommodity.report._portfolio import describe_results as describe_results
from torchcommodity.report._portfolio import describe_selection as describe_selection
from torchcommodity.report._portfolio import portfolio_days as portfolio_days
from torchcommodity.report._portfolio import portfolio_html as portfolio_html
from torchcommodity.report._portfolio import portfolio_row as portfolio_row
from torchcommodity.report._portfolio import portfolio_weights as portfolio_weights
from torchcommodity.report._report_data import ReportData as ReportData
from torchcommodity.report._report_data import RunRecord as RunRecord
from torchcommodity.report._report_data import package_versions as package_versions
from torchcommodity.report._scenarios import describe_evaluation as describe_evaluation
from torchcommodity.report._scenarios import scenarios_html as scenarios_html
from torchcommodity.report._scoreboard import ScoreboardReportData as ScoreboardReportData
from torchcommodity.report._scoreboard import scoreboard_html as scoreboard_html
from torchcommodity.report._scoreboard import scoreboard_json as scoreboard_json
from torchcommodity.report._sections import describe_contracts as describe_contracts
from torchcommodity.report._tables import format_percent as format_percent
from torchcommodity.report._tables import format_price as format_price

__all__ = [
    "PortfolioReportData",
    "ReportData",
    "RunRecord",
    "ScoreboardReportData",
    "check_output_folder",
    "describe_comparison",
    "describe_contracts",
    "describe_evaluation",
    "describe_results",
    "describe_scores",
    "describe_selection",
    "format_percent",
    "format_price",
    "package_versions",
    "portfolio_days",
    "portfolio_html",
    "portfolio_row",
    "portfolio_weights",
    "scenarios_html",
    "scoreboard_html",
    "scoreboard_json",
    "to_csv",
    "to_html",
    "to_json",
    "write_files",
]
