"""Prices from files, publishers and the store, as a `Panel` with provenance; walk-forward splits of its rows.

Names are imported on first use: reading dates and checking numbers need no torch.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy
from torchcommodity.data import _check_extra as _check_extra

if TYPE_CHECKING:
    from torchcommodity.data._atomic_write import write_atomic as write_atomic
    from torchcommodity.data._atomic_write import write_files_atomic as write_files_atomic
    from torchcommodity.data._bars import Bars as Bars
    from torchcommodity.data._bars import read_bars as read_bars
    from torchcommodity.data._calendar import RowCalendar as RowCalendar
    from torchcommodity.data._calendar import row_calendar as row_calendar
    from torchcommodity.data._calendar import trading_calendar as trading_calendar
    from torchcommodity.data._columns.cells import expected_range as expected_range
    from torchcommodity.data._columns.cells import overflows as overflows
    from torchcommodity.data._columns.cells import parse_date as parse_date
    from torchcommodity.data._columns.cells import parse_price as parse_price
    from torchcommodity.data._columns.cells import parse_prices as parse_prices
    from torchcommodity.data._covariates.covariate import Covariate as Covariate
    from torchcommodity.data._covariates.covariate import CovariateSpec as CovariateSpec
    from torchcommodity.data._covariates.covariates import CovariateCheck as CovariateCheck
    from torchcommodity.data._covariates.covariates import Covariates as Covariates
    from torchcommodity.data._covariates.covariates import KnownValues as KnownValues
    from torchcommodity.data._covariates.to_covariates import to_covariates as to_covariates
    from torchcommodity.data._csv_text import frame_to_csv as frame_to_csv
    from torchcommodity.data._csv_text import quote_spreadsheet_cell as quote_spreadsheet_cell
    from torchcommodity.data._embedded.embedded import embedded as embedded
    from torchcommodity.data._embedded.embedded import embedded_symbols as embedded_symbols
    from torchcommodity.data._equity_indices import equity_indices as equity_indices
    from torchcommodity.data._errors import TREATMENTS as TREATMENTS
    from torchcommodity.data._errors import DataError as DataError
    from torchcommodity.data._errors import Finding as Finding
    from torchcommodity.data._errors import summarize_findings as summarize_findings
    from torchcommodity.data._errors import summarize_names as summarize_names
    from torchcommodity.data._files import read_curve as read_curve
    from torchcommodity.data._folders import cache_dir as cache_dir
    from torchcommodity.data._folders import store_path as store_path
    from torchcommodity.data._formats import FORMATS as FORMATS
    from torchcommodity.data._formats import Format as Format
    from torchcommodity.data._formats import ReadOptions as ReadOptions
    from torchcommodity.data._frequency import FREQUENCIES as FREQUENCIES
    from torchcommodity.data._frequency import Frequency as Frequency
    from torchcommodity.data._frequency import calendar_years as calendar_years
    from torchcommodity.data._frequency import check_daily as check_daily
    from torchcommodity.data._frequency import check_frequency as check_frequency
    from torchcommodity.data._frequency import frequency_mismatch as frequency_mismatch
    from torchcommodity.data._frequency import infer_frequency as infer_frequency
    from torchcommodity.data._frequency import month_end as month_end
    from torchcommodity.data._futures.contract_codes import find_product as find_product
    from torchcommodity.data._futures.contract_prices import ContractPrices as ContractPrices
    from torchcommodity.data._futures.contracts import CONTRACTS as CONTRACTS
    from torchcommodity.data._futures.contracts import Contract as Contract
    from torchcommodity.data._futures.contracts import get_contract as get_contract
    from torchcommodity.data._futures.curve import Curve as Curve
    from torchcommodity.data._futures.expiry import business_calendar as business_calendar
    from torchcommodity.data._futures.read_contracts import read_contracts as read_contracts
    from torchcommodity.data._futures.roll_rule import RollRule as RollRule
    from torchcommodity.data._futures.rolls import roll_days as roll_days
    from torchcommodity.data._futures.rolls import roll_months as roll_months
    from torchcommodity.data._horizons import Horizon as Horizon
    from torchcommodity.data._horizons import horizon_code as horizon_code
    from torchcommodity.data._horizons import horizon_rows as horizon_rows
    from torchcommodity.data._inspect.inspect import inspect as inspect
    from torchcommodity.data._inspect.inspect import inspect_prices as inspect_prices
    from torchcommodity.data._inspect.statistics import PriceStatistics as PriceStatistics
    from torchcommodity.data._inspect.statistics import price_statistics as price_statistics
    from torchcommodity.data._inspect.training import compare_with_training as compare_with_training
    from torchcommodity.data._lake import local_copy as local_copy
    from torchcommodity.data._lake import public_address as public_address
    from torchcommodity.data._layout import Layout as Layout
    from torchcommodity.data._layout import detect_layout as detect_layout
    from torchcommodity.data._names import printable as printable
    from torchcommodity.data._names import symbol_problem as symbol_problem
    from torchcommodity.data._panel import Panel as Panel
    from torchcommodity.data._product_names import product_name as product_name
    from torchcommodity.data._provenance import NOT_STATED as NOT_STATED
    from torchcommodity.data._provenance import Provenance as Provenance
    from torchcommodity.data._provenance import utc_now as utc_now
    from torchcommodity.data._publishers.eia import eia as eia
    from torchcommodity.data._publishers.eia_curve import eia_curve as eia_curve
    from torchcommodity.data._publishers.fred import fred as fred
    from torchcommodity.data._publishers.http import Http as Http
    from torchcommodity.data._publishers.update import SeriesUpdate as SeriesUpdate
    from torchcommodity.data._publishers.update import Update as Update
    from torchcommodity.data._publishers.update import updatable_symbols as updatable_symbols
    from torchcommodity.data._publishers.update import update as update
    from torchcommodity.data._quantiles import QuantileTable as QuantileTable
    from torchcommodity.data._quantiles import QuantileUnit as QuantileUnit
    from torchcommodity.data._quantiles import read_quantiles as read_quantiles
    from torchcommodity.data._read import read as read
    from torchcommodity.data._splits import Split as Split
    from torchcommodity.data._splits import hold_out as hold_out
    from torchcommodity.data._splits import walk_forward as walk_forward
    from torchcommodity.data._store.state import Vintage as Vintage
    from torchcommodity.data._store.store import Store as Store
    from torchcommodity.data._store.store import StoreEntry as StoreEntry
    from torchcommodity.data._synthetic import SYNTHETIC as SYNTHETIC
    from torchcommodity.data._synthetic import SyntheticTensor as SyntheticTensor
    from torchcommodity.data._synthetic import check_not_synthetic as check_not_synthetic
    from torchcommodity.data._synthetic import is_synthetic as is_synthetic
    from torchcommodity.data._synthetic import synthetic_symbol as synthetic_symbol
    from torchcommodity.data._targets import target_rows as target_rows
    from torchcommodity.data._targets import targets as targets
    from torchcommodity.data._to_panel import to_panel as to_panel
    from torchcommodity.data._today import check_not_future as check_not_future
    from torchcommodity.data._today import latest_date as latest_date
    from torchcommodity.data._windows import Window as Window
    from torchcommodity.data._windows import WindowDataset as WindowDataset
    from torchcommodity.data._write import write as write

__all__ = [
    "CONTRACTS",
    "FORMATS",
    "FREQUENCIES",
    "NOT_STATED",
    "SYNTHETIC",
    "TREATMENTS",
    "Bars",
    "Contract",
    "ContractPrices",
    "Covariate",
    "CovariateCheck",
    "CovariateSpec",
    "Covariates",
    "Curve",
    "DataError",
    "Finding",
    "Format",
    "Frequency",
    "Horizon",
    "Http",
    "KnownValues",
    "Layout",
    "Panel",
    "PriceStatistics",
    "Provenance",
    "QuantileTable",
    "QuantileUnit",
    "ReadOptions",
    "RollRule",
    "RowCalendar",
    "SeriesUpdate",
    "Split",
    "Store",
    "StoreEntry",
    "SyntheticTensor",
    "Update",
    "Vintage",
    "Window",
    "WindowDataset",
    "business_calendar",
    "cache_dir",
    "calendar_years",
    "check_daily",
    "check_frequency",
    "check_not_future",
    "check_not_synthetic",
    "compare_with_training",
    "detect_layout",
    "eia",
    "eia_curve",
    "embedded",
    "embedded_symbols",
    "equity_indices",
    "expected_range",
    "find_product",
    "frame_to_csv",
    "fred",
    "frequency_mismatch",
    "get_contract",
    "hold_out",
    "horizon_code",
    "horizon_rows",
    "infer_frequency",
    "inspect",
    "inspect_prices",
    "is_synthetic",
    "latest_date",
    "local_copy",
    "month_end",
    "overflows",
    "parse_date",
    "parse_price",
    "parse_prices",
    "price_statistics",
    "printable",
    "product_name",
    "public_address",
    "quote_spreadsheet_cell",
    "read",
    "read_bars",
    "read_contracts",
    "read_curve",
    "read_quantiles",
    "roll_days",
    "roll_months",
    "row_calendar",
    "store_path",
    "summarize_findings",
    "summarize_names",
    "symbol_problem",
    "synthetic_symbol",
    "target_rows",
    "targets",
    "to_covariates",
    "to_panel",
    "trading_calendar",
    "updatable_symbols",
    "update",
    "utc_now",
    "walk_forward",
    "write",
    "write_atomic",
    "write_files_atomic",
]

if not TYPE_CHECKING:  # type checkers would allow any name
    __getattr__, __dir__ = _lazy.lazy_names(__name__)
