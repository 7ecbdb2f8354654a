"""Score any quantile forecaster by a fixed protocol: prices, origins, horizons, levels, reference and tests."""

from torchcommodity.scoreboard._forecasts import ForecastFunction as ForecastFunction
from torchcommodity.scoreboard._forecasts import align_quantiles as align_quantiles
from torchcommodity.scoreboard._forecasts import call_function as call_function
from torchcommodity.scoreboard._run import check_look_ahead as check_look_ahead
from torchcommodity.scoreboard._run import run as run
from torchcommodity.scoreboard._scoreboard import Entry as Entry
from torchcommodity.scoreboard._scoreboard import EntryScore as EntryScore
from torchcommodity.scoreboard._scoreboard import RankedEntry as RankedEntry
from torchcommodity.scoreboard._scoreboard import Scoreboard as Scoreboard
from torchcommodity.scoreboard._task import PROTOCOL as PROTOCOL
from torchcommodity.scoreboard._task import REFERENCE as REFERENCE
from torchcommodity.scoreboard._task import TRACKS as TRACKS
from torchcommodity.scoreboard._task import Task as Task
from torchcommodity.scoreboard._task import load_track as load_track
from torchcommodity.scoreboard._task import make_task as make_task

__all__ = [
    "PROTOCOL",
    "REFERENCE",
    "TRACKS",
    "Entry",
    "EntryScore",
    "ForecastFunction",
    "RankedEntry",
    "Scoreboard",
    "Task",
    "align_quantiles",
    "call_function",
    "check_look_ahead",
    "load_track",
    "make_task",
    "run",
]
