"""What every chart and page shares: colors, parts of plotly figures, prices and ages in words."""

from torchcommodity.charts._charts import COLORS as COLORS
from torchcommodity.charts._charts import INK as INK
from torchcommodity.charts._charts import LIGHT as LIGHT
from torchcommodity.charts._charts import MUTED as MUTED
from torchcommodity.charts._charts import PALETTE as PALETTE
from torchcommodity.charts._charts import PAPER as PAPER
from torchcommodity.charts._charts import Chart as Chart
from torchcommodity.charts._charts import chart_layout as chart_layout
from torchcommodity.charts._charts import chart_number as chart_number
from torchcommodity.charts._charts import date_line as date_line
from torchcommodity.charts._charts import line_trace as line_trace
from torchcommodity.charts._charts import log_axis as log_axis
from torchcommodity.charts._charts import palette_css as palette_css
from torchcommodity.charts._charts import plotly_figure as plotly_figure
from torchcommodity.charts._charts import symbol_index as symbol_index
from torchcommodity.charts._numbers import forecast_decimals as forecast_decimals
from torchcommodity.charts._numbers import format_age as format_age
from torchcommodity.charts._numbers import quoted_decimals as quoted_decimals

__all__ = [
    "COLORS",
    "INK",
    "LIGHT",
    "MUTED",
    "PALETTE",
    "PAPER",
    "Chart",
    "chart_layout",
    "chart_number",
    "date_line",
    "forecast_decimals",
    "format_age",
    "line_trace",
    "log_axis",
    "palette_css",
    "plotly_figure",
    "quoted_decimals",
    "symbol_index",
]
