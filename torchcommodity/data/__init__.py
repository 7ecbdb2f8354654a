"""Prices from files, publishers and the store, as a `Panel` with provenance; walk-forward splits of its rows.

Names are imported on first use: reading dates and checking numbers need no torch.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy

if TYPE_CHECKING:
    from torchcommodity.data._contracts.continuous import RollRule as RollRule
    from torchcommodity.data._contracts.contract_prices import ContractPrices as ContractPrices
    from torchcommodity.data._contracts.contract_prices import read_contracts as read_contracts
    from torchcommodity.data._core.calendar import FREQUENCIES as FREQUENCIES
    from torchcommodity.data._core.calendar import Frequency as Frequency
    from torchcommodity.data._core.calendar import RowCalendar as RowCalendar
    from torchcommodity.data._core.calendar import calendar_conflict as calendar_conflict
    from torchcommodity.data._core.calendar import calendar_years as calendar_years
    from torchcommodity.data._core.calendar import frequency_mismatch as frequency_mismatch
    from torchcommodity.data._core.calendar import frequency_problem as frequency_problem
    from torchcommodity.data._core.calendar import infer_frequency as infer_frequency
    from torchcommodity.data._core.calendar import latest_date as latest_date
    from torchcommodity.data._core.calendar import month_end as month_end
    from torchcommodity.data._core.calendar import row_calendar as row_calendar
    from torchcommodity.data._core.calendar import trading_calendar as trading_calendar
    from torchcommodity.data._core.contracts import CONTRACTS as CONTRACTS
    from torchcommodity.data._core.contracts import Contract as Contract
    from torchcommodity.data._core.contracts import business_calendar as business_calendar
    from torchcommodity.data._core.contracts import find_product as find_product
    from torchcommodity.data._core.contracts import get_contract as get_contract
    from torchcommodity.data._core.curve import Curve as Curve
    from torchcommodity.data._core.date_checks import check_daily as check_daily
    from torchcommodity.data._core.date_checks import check_frequency as check_frequency
    from torchcommodity.data._core.date_checks import check_not_future as check_not_future
    from torchcommodity.data._core.errors import TREATMENTS as TREATMENTS
    from torchcommodity.data._core.errors import DataError as DataError
    from torchcommodity.data._core.errors import DataWarning as DataWarning
    from torchcommodity.data._core.errors import Finding as Finding
    from torchcommodity.data._core.errors import printable as printable
    from torchcommodity.data._core.errors import summarize_findings as summarize_findings
    from torchcommodity.data._core.errors import summarize_names as summarize_names
    from torchcommodity.data._core.horizons import Horizon as Horizon
    from torchcommodity.data._core.horizons import horizon_code as horizon_code
    from torchcommodity.data._core.horizons import horizon_index as horizon_index
    from torchcommodity.data._core.horizons import horizon_name as horizon_name
    from torchcommodity.data._core.horizons import horizon_rows as horizon_rows
    from torchcommodity.data._core.panel import Panel as Panel
    from torchcommodity.data._core.panel_fields import MIN_RANGE_SHARE as MIN_RANGE_SHARE
    from torchcommodity.data._core.panel_fields import bar_columns as bar_columns
    from torchcommodity.data._core.panel_fields import range_findings as range_findings
    from torchcommodity.data._core.panel_fields import range_share as range_share
    from torchcommodity.data._core.panel_fields import usable_ranges as usable_ranges
    from torchcommodity.data._core.prices import MIN_CHANGES as MIN_CHANGES
    from torchcommodity.data._core.prices import expected_range as expected_range
    from torchcommodity.data._core.prices import may_be_negative as may_be_negative
    from torchcommodity.data._core.prices import overflows as overflows
    from torchcommodity.data._core.provenance import NOT_STATED as NOT_STATED
    from torchcommodity.data._core.provenance import SYNTHETIC as SYNTHETIC
    from torchcommodity.data._core.provenance import Provenance as Provenance
    from torchcommodity.data._core.provenance import SyntheticTensor as SyntheticTensor
    from torchcommodity.data._core.provenance import check_not_synthetic as check_not_synthetic
    from torchcommodity.data._core.provenance import equity_indices as equity_indices
    from torchcommodity.data._core.provenance import is_synthetic as is_synthetic
    from torchcommodity.data._core.provenance import symbol_problem as symbol_problem
    from torchcommodity.data._core.provenance import synthetic_symbol as synthetic_symbol
    from torchcommodity.data._core.provenance import text_problem as text_problem
    from torchcommodity.data._core.provenance import unit_problem as unit_problem
    from torchcommodity.data._core.provenance import utc_now as utc_now
    from torchcommodity.data._core.rolls import roll_days as roll_days
    from torchcommodity.data._core.rolls import roll_months as roll_months
    from torchcommodity.data._core.splits import Split as Split
    from torchcommodity.data._core.splits import hold_out as hold_out
    from torchcommodity.data._core.splits import walk_forward as walk_forward
    from torchcommodity.data._core.spread_formulas import USUAL_SPREADS as USUAL_SPREADS
    from torchcommodity.data._core.spread_formulas import Leg as Leg
    from torchcommodity.data._core.spread_formulas import UsualSpread as UsualSpread
    from torchcommodity.data._core.spread_formulas import parse_spread as parse_spread
    from torchcommodity.data._core.targets import target_rows as target_rows
    from torchcommodity.data._core.targets import targets as targets
    from torchcommodity.data._core.windows import Window as Window
    from torchcommodity.data._core.windows import WindowDataset as WindowDataset
    from torchcommodity.data._covariates.covariate import Covariate as Covariate
    from torchcommodity.data._covariates.covariate import CovariateSpec as CovariateSpec
    from torchcommodity.data._covariates.covariates import CovariateCheck as CovariateCheck
    from torchcommodity.data._covariates.covariates import Covariates as Covariates
    from torchcommodity.data._covariates.covariates import KnownValues as KnownValues
    from torchcommodity.data._quality.inspect import accept_findings as accept_findings
    from torchcommodity.data._quality.inspect import check_doubts as check_doubts
    from torchcommodity.data._quality.inspect import check_publishers as check_publishers
    from torchcommodity.data._quality.inspect import inspect as inspect
    from torchcommodity.data._quality.inspect import inspect_prices as inspect_prices
    from torchcommodity.data._quality.inspect import is_strict as is_strict
    from torchcommodity.data._quality.prices import PriceForm as PriceForm
    from torchcommodity.data._quality.prices import price_forms as price_forms
    from torchcommodity.data._quality.prices import signed_findings as signed_findings
    from torchcommodity.data._quality.prices import signed_symbols as signed_symbols
    from torchcommodity.data._quality.training import PriceStatistics as PriceStatistics
    from torchcommodity.data._quality.training import compare_with_training as compare_with_training
    from torchcommodity.data._quality.training import price_statistics as price_statistics
    from torchcommodity.data._read import add_curve as add_curve
    from torchcommodity.data._read import add_references as add_references
    from torchcommodity.data._read import read as read
    from torchcommodity.data._read import read_curve as read_curve
    from torchcommodity.data._read import to_panel as to_panel
    from torchcommodity.data._sources.build import Bars as Bars
    from torchcommodity.data._sources.build import read_bars as read_bars
    from torchcommodity.data._sources.embedded import embedded as embedded
    from torchcommodity.data._sources.embedded import embedded_symbols as embedded_symbols
    from torchcommodity.data._sources.embedded import product_name as product_name
    from torchcommodity.data._sources.files import TableName as TableName
    from torchcommodity.data._sources.files import cache_dir as cache_dir
    from torchcommodity.data._sources.files import check_output as check_output
    from torchcommodity.data._sources.files import connect_duckdb as connect_duckdb
    from torchcommodity.data._sources.files import create_duckdb as create_duckdb
    from torchcommodity.data._sources.files import open_duckdb as open_duckdb
    from torchcommodity.data._sources.files import parse_table_name as parse_table_name
    from torchcommodity.data._sources.files import protect_inputs as protect_inputs
    from torchcommodity.data._sources.files import store_path as store_path
    from torchcommodity.data._sources.files import write_atomic as write_atomic
    from torchcommodity.data._sources.files import write_files_atomic as write_files_atomic
    from torchcommodity.data._sources.formats import FORMATS as FORMATS
    from torchcommodity.data._sources.formats import Format as Format
    from torchcommodity.data._sources.locations import Http as Http
    from torchcommodity.data._sources.locations import local_copy as local_copy
    from torchcommodity.data._sources.locations import public_address as public_address
    from torchcommodity.data._sources.long_format import LongFormat as LongFormat
    from torchcommodity.data._sources.publishers import eia as eia
    from torchcommodity.data._sources.publishers import eia_curve as eia_curve
    from torchcommodity.data._sources.publishers import fred as fred
    from torchcommodity.data._sources.quantiles import QuantileTable as QuantileTable
    from torchcommodity.data._sources.quantiles import QuantileUnit as QuantileUnit
    from torchcommodity.data._sources.quantiles import read_quantiles as read_quantiles
    from torchcommodity.data._sources.read_arguments import ReadArguments as ReadArguments
    from torchcommodity.data._sources.read_arguments import TableArguments as TableArguments
    from torchcommodity.data._sources.write import frame_to_csv as frame_to_csv
    from torchcommodity.data._sources.write import quote_spreadsheet_cell as quote_spreadsheet_cell
    from torchcommodity.data._sources.write import write as write
    from torchcommodity.data._spread import SPREAD_SERIES as SPREAD_SERIES
    from torchcommodity.data._spread import restore_spreads as restore_spreads
    from torchcommodity.data._spread import spread as spread
    from torchcommodity.data._store.rows import Vintage as Vintage
    from torchcommodity.data._store.store import Store as Store
    from torchcommodity.data._store.store import StoreEntry as StoreEntry
    from torchcommodity.data._store.update import SeriesUpdate as SeriesUpdate
    from torchcommodity.data._store.update import Update as Update
    from torchcommodity.data._store.update import updatable_symbols as updatable_symbols
    from torchcommodity.data._store.update import update as update
    from torchcommodity.data._to_covariates import to_covariates as to_covariates

_MODULES = {
    "_contracts.continuous": ["RollRule"],
    "_contracts.contract_prices": ["ContractPrices", "read_contracts"],
    "_core.calendar": [
        "FREQUENCIES",
        "Frequency",
        "RowCalendar",
        "calendar_conflict",
        "calendar_years",
        "frequency_mismatch",
        "frequency_problem",
        "infer_frequency",
        "latest_date",
        "month_end",
        "row_calendar",
        "trading_calendar",
    ],
    "_core.contracts": ["CONTRACTS", "Contract", "business_calendar", "find_product", "get_contract"],
    "_core.curve": ["Curve"],
    "_core.date_checks": ["check_daily", "check_frequency", "check_not_future"],
    "_core.errors": [
        "DataError",
        "DataWarning",
        "Finding",
        "TREATMENTS",
        "printable",
        "summarize_findings",
        "summarize_names",
    ],
    "_core.horizons": ["Horizon", "horizon_code", "horizon_index", "horizon_name", "horizon_rows"],
    "_core.panel": ["Panel"],
    "_core.panel_fields": ["MIN_RANGE_SHARE", "bar_columns", "range_findings", "range_share", "usable_ranges"],
    "_core.prices": ["MIN_CHANGES", "expected_range", "may_be_negative", "overflows"],
    "_core.provenance": [
        "NOT_STATED",
        "Provenance",
        "SYNTHETIC",
        "SyntheticTensor",
        "check_not_synthetic",
        "equity_indices",
        "is_synthetic",
        "symbol_problem",
        "synthetic_symbol",
        "text_problem",
        "unit_problem",
        "utc_now",
    ],
    "_core.rolls": ["roll_days", "roll_months"],
    "_core.splits": ["Split", "hold_out", "walk_forward"],
    "_core.spread_formulas": ["Leg", "USUAL_SPREADS", "UsualSpread", "parse_spread"],
    "_core.targets": ["target_rows", "targets"],
    "_core.windows": ["Window", "WindowDataset"],
    "_covariates.covariate": ["Covariate", "CovariateSpec"],
    "_covariates.covariates": ["CovariateCheck", "Covariates", "KnownValues"],
    "_quality.inspect": [
        "accept_findings",
        "check_doubts",
        "check_publishers",
        "inspect",
        "inspect_prices",
        "is_strict",
    ],
    "_quality.prices": ["PriceForm", "price_forms", "signed_findings", "signed_symbols"],
    "_quality.training": ["PriceStatistics", "compare_with_training", "price_statistics"],
    "_read": ["add_curve", "add_references", "read", "read_curve", "to_panel"],
    "_sources.build": ["Bars", "read_bars"],
    "_sources.embedded": ["embedded", "embedded_symbols", "product_name"],
    "_sources.files": [
        "TableName",
        "cache_dir",
        "check_output",
        "connect_duckdb",
        "create_duckdb",
        "open_duckdb",
        "parse_table_name",
        "protect_inputs",
        "store_path",
        "write_atomic",
        "write_files_atomic",
    ],
    "_sources.formats": ["FORMATS", "Format"],
    "_sources.locations": ["Http", "local_copy", "public_address"],
    "_sources.long_format": ["LongFormat"],
    "_sources.publishers": ["eia", "eia_curve", "fred"],
    "_sources.quantiles": ["QuantileTable", "QuantileUnit", "read_quantiles"],
    "_sources.read_arguments": ["ReadArguments", "TableArguments"],
    "_sources.write": ["frame_to_csv", "quote_spreadsheet_cell", "write"],
    "_spread": ["SPREAD_SERIES", "restore_spreads", "spread"],
    "_store.rows": ["Vintage"],
    "_store.store": ["Store", "StoreEntry"],
    "_store.update": ["SeriesUpdate", "Update", "updatable_symbols", "update"],
    "_to_covariates": ["to_covariates"],
}

if not TYPE_CHECKING:  # type checkers would allow any name
    __all__, __getattr__, __dir__ = _lazy.lazy_names(__name__, _MODULES)
