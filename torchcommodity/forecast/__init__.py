"""Fit forecasters, predict quantiles, backtest, and score against baselines."""

from torchcommodity.forecast._backtest import TEST_YEARS as TEST_YEARS
from torchcommodity.forecast._backtest import backtest as backtest
from torchcommodity.forecast._baselines import baselines as baselines
from torchcommodity.forecast._cache import CacheEntry as CacheEntry
from torchcommodity.forecast._cache import backtest_span as backtest_span
from torchcommodity.forecast._cache import cache_entries as cache_entries
from torchcommodity.forecast._cache import cached_backtest as cached_backtest
from torchcommodity.forecast._cache import cached_fit as cached_fit
from torchcommodity.forecast._cache import clear_cache as clear_cache
from torchcommodity.forecast._cache import code_hash as code_hash
from torchcommodity.forecast._cache import data_hash as data_hash
from torchcommodity.forecast._calendar import Calendar as Calendar
from torchcommodity.forecast._calendar import calendar as calendar
from torchcommodity.forecast._conformal import conformal as conformal
from torchcommodity.forecast._contract_rolls import symbol_roll_days as symbol_roll_days
from torchcommodity.forecast._correlation import CORRELATION_WINDOW as CORRELATION_WINDOW
from torchcommodity.forecast._correlation import Correlation as Correlation
from torchcommodity.forecast._correlation import correlation as correlation
from torchcommodity.forecast._correlation import pairs_by_strength as pairs_by_strength
from torchcommodity.forecast._fan_chart import Fan as Fan
from torchcommodity.forecast._fan_chart import interpolate_quantiles as interpolate_quantiles
from torchcommodity.forecast._fit import fit as fit
from torchcommodity.forecast._fit import predict as predict
from torchcommodity.forecast._forecast import Forecast as Forecast
from torchcommodity.forecast._forecast import fan_chart as fan_chart
from torchcommodity.forecast._forecast import make_fan as make_fan
from torchcommodity.forecast._forecaster import Forecaster as Forecaster
from torchcommodity.forecast._forecaster_file import COEFFICIENTS as COEFFICIENTS
from torchcommodity.forecast._forecaster_file import MAX_ROWS as MAX_ROWS
from torchcommodity.forecast._forecaster_file import PAIRS as PAIRS
from torchcommodity.forecast._forecaster_file import ROWS as ROWS
from torchcommodity.forecast._forecaster_file import FitRecord as FitRecord
from torchcommodity.forecast._forecaster_file import check_names as check_names
from torchcommodity.forecast._forecaster_file import check_pairs as check_pairs
from torchcommodity.forecast._forecaster_file import check_settings as check_settings
from torchcommodity.forecast._forecaster_file import check_statistics as check_statistics
from torchcommodity.forecast._forecaster_file import check_text as check_text
from torchcommodity.forecast._forecaster_file import check_weights as check_weights
from torchcommodity.forecast._forecaster_file import parse_date as parse_date
from torchcommodity.forecast._forecaster_file import signed_columns as signed_columns
from torchcommodity.forecast._history import align_panel as align_panel
from torchcommodity.forecast._history import check_warmup as check_warmup
from torchcommodity.forecast._history import ended_ranges as ended_ranges
from torchcommodity.forecast._history import ended_references as ended_references
from torchcommodity.forecast._history import input_findings as input_findings
from torchcommodity.forecast._history import last_prices as last_prices
from torchcommodity.forecast._history import missing_curves as missing_curves
from torchcommodity.forecast._history import signed_price_findings as signed_price_findings
from torchcommodity.forecast._intervals import Coverage as Coverage
from torchcommodity.forecast._intervals import Interval as Interval
from torchcommodity.forecast._intervals import count_independent as count_independent
from torchcommodity.forecast._intervals import inside as inside
from torchcommodity.forecast._intervals import interval_name as interval_name
from torchcommodity.forecast._intervals import intervals as intervals
from torchcommodity.forecast._intervals import level_index as level_index
from torchcommodity.forecast._intervals import main_interval as main_interval
from torchcommodity.forecast._location import Location as Location
from torchcommodity.forecast._location import LocationPart as LocationPart
from torchcommodity.forecast._location import explain_location as explain_location
from torchcommodity.forecast._outlook import STALE_DAYS as STALE_DAYS
from torchcommodity.forecast._outlook import Outlook as Outlook
from torchcommodity.forecast._outlook import OutlookRange as OutlookRange
from torchcommodity.forecast._outlook import OutlookRow as OutlookRow
from torchcommodity.forecast._outlook import outlook as outlook
from torchcommodity.forecast._outlook import previous_forecast as previous_forecast
from torchcommodity.forecast._pipelines import QuantilePipeline as QuantilePipeline
from torchcommodity.forecast._pretrained import PretrainedModel as PretrainedModel
from torchcommodity.forecast._pretrained import pretrained as pretrained
from torchcommodity.forecast._score import Backtest as Backtest
from torchcommodity.forecast._score import Score as Score
from torchcommodity.forecast._score import Scores as Scores
from torchcommodity.forecast._score import diebold_mariano as diebold_mariano
from torchcommodity.forecast._score import score as score
from torchcommodity.forecast._score import symbol_skills as symbol_skills
from torchcommodity.forecast._simulation import Simulation as Simulation
from torchcommodity.forecast._statistical import statistical as statistical
from torchcommodity.forecast._summary import BacktestSummary as BacktestSummary
from torchcommodity.forecast._summary import summarize as summarize

__all__ = [
    "COEFFICIENTS",
    "CORRELATION_WINDOW",
    "MAX_ROWS",
    "PAIRS",
    "ROWS",
    "STALE_DAYS",
    "TEST_YEARS",
    "Backtest",
    "BacktestSummary",
    "CacheEntry",
    "Calendar",
    "Correlation",
    "Coverage",
    "Fan",
    "FitRecord",
    "Forecast",
    "Forecaster",
    "Interval",
    "Location",
    "LocationPart",
    "Outlook",
    "OutlookRange",
    "OutlookRow",
    "PretrainedModel",
    "QuantilePipeline",
    "Score",
    "Scores",
    "Simulation",
    "align_panel",
    "backtest",
    "backtest_span",
    "baselines",
    "cache_entries",
    "cached_backtest",
    "cached_fit",
    "calendar",
    "check_names",
    "check_pairs",
    "check_settings",
    "check_statistics",
    "check_text",
    "check_warmup",
    "check_weights",
    "clear_cache",
    "code_hash",
    "conformal",
    "correlation",
    "count_independent",
    "data_hash",
    "diebold_mariano",
    "ended_ranges",
    "ended_references",
    "explain_location",
    "fan_chart",
    "fit",
    "input_findings",
    "inside",
    "interpolate_quantiles",
    "interval_name",
    "intervals",
    "last_prices",
    "level_index",
    "main_interval",
    "make_fan",
    "missing_curves",
    "outlook",
    "pairs_by_strength",
    "parse_date",
    "predict",
    "pretrained",
    "previous_forecast",
    "score",
    "signed_columns",
    "signed_price_findings",
    "statistical",
    "summarize",
    "symbol_roll_days",
    "symbol_skills",
]
