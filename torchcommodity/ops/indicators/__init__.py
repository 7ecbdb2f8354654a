"""Technical indicators on panels (..., T, N), with the names (in lower case), arguments and defaults of TA-Lib.

The following holds for all of them:

**Shapes.** Each panel is (..., T, N): leading axes are batch, then time, then asset. All panels of a call, and all
outputs, have the same shape. float16 and bfloat16 are computed in float32. Outputs are in the unit of the price unless
stated otherwise.

**Warm-up.** The output has length T. The first `lookback(name, **settings)` rows are NaN, as many as in TA-Lib, counted
for each series from the first row where all panels are finite.

**Missing values.** A row is missing where one of its inputs is not finite. A window that contains a missing row is NaN.
Recursive averages (exponential, Wilder's, cumulative) stay constant over missing rows and continue with the next one.
"Previous" then means the last price before the gap, so that the changes across a gap sum to the total change.

**Gradients.** Differentiable in every panel, to any order, in reverse and forward mode. The gradient of a NaN output is
ignored, and that of a missing value is zero. Where a divisor is zero the output is the constant stated in the
docstring. At a tie (two highest prices, no change) the derivative of one side is used.

**Causality.** Row t depends on rows up to t only.

**Seeds.** Tools start recursive averages in different ways. `mode` selects one:

- "talib" (default): the mean of the first `timeperiod` values. Equal to TA-Lib from the first row on.
- "pandas": the first value, as `ewm(alpha, adjust=False, ignore_na=True, min_periods=timeperiod)`.
- "wilder": as in Wilder's book. For `atr` and `natr` the first row, which has no previous close, has a range too; for
  directional movement the first sum has `timeperiod` rows, one more than in TA-Lib. Otherwise equal to "talib".
- "simple": the simple mean of the last `timeperiod` rows instead of Wilder's average (Cutler's RSI).

**Learnable periods.** Where `timeperiod` may be a Tensor, it holds real numbers >= 1, one for all series or one per
series (broadcastable to (..., 1, N)), and may require a gradient. The gradient is that of the weight, 2 / (timeperiod
+ 1) or 1 / timeperiod; the seed and the warm-up have `timeperiod` rows, rounded up, and are held constant. An integer
value gives the same result as the int. A period below 1 gives NaN.

**Errors.** ValueError or TypeError if a panel is not a floating-point Tensor (..., T, N), panels differ in shape, dtype
or device, a period is not an int or too small, or a mode or a moving average type is unknown.

**matype** is TA-Lib's moving average type: 0 sma, 1 ema, 2 wma, 3 dema, 4 tema, 5 trima, 6 kama, 8 t3, 9 hma, 12 zlema,
13 rma.

**Speed.** On panels of many series the indicators run at 0.1 to 0.5 times the speed of TA-Lib's C loops; they add
gradients, missing values, batches, GPUs and export. `ops.technical_indicators` computes SMA, RSI and Bollinger bands in
one fast pass.
"""

from torchcommodity.ops.indicators._arithmetic import add as add
from torchcommodity.ops.indicators._arithmetic import cumsum as cumsum
from torchcommodity.ops.indicators._arithmetic import div as div
from torchcommodity.ops.indicators._arithmetic import mult as mult
from torchcommodity.ops.indicators._arithmetic import sub as sub
from torchcommodity.ops.indicators._arithmetic import sum as sum
from torchcommodity.ops.indicators._bands import Bands as Bands
from torchcommodity.ops.indicators._bands import accbands as accbands
from torchcommodity.ops.indicators._bands import bbands as bbands
from torchcommodity.ops.indicators._bands import donchian as donchian
from torchcommodity.ops.indicators._bands import kc as kc
from torchcommodity.ops.indicators._convergence import MACD as MACD
from torchcommodity.ops.indicators._convergence import apo as apo
from torchcommodity.ops.indicators._convergence import macd as macd
from torchcommodity.ops.indicators._convergence import macdext as macdext
from torchcommodity.ops.indicators._convergence import macdfix as macdfix
from torchcommodity.ops.indicators._convergence import ppo as ppo
from torchcommodity.ops.indicators._convergence import trix as trix
from torchcommodity.ops.indicators._directional import adx as adx
from torchcommodity.ops.indicators._directional import adxr as adxr
from torchcommodity.ops.indicators._directional import dx as dx
from torchcommodity.ops.indicators._directional import minus_di as minus_di
from torchcommodity.ops.indicators._directional import minus_dm as minus_dm
from torchcommodity.ops.indicators._directional import plus_di as plus_di
from torchcommodity.ops.indicators._directional import plus_dm as plus_dm
from torchcommodity.ops.indicators._extremes import MinMax as MinMax
from torchcommodity.ops.indicators._extremes import MinMaxIndex as MinMaxIndex
from torchcommodity.ops.indicators._extremes import max as max
from torchcommodity.ops.indicators._extremes import maxindex as maxindex
from torchcommodity.ops.indicators._extremes import midpoint as midpoint
from torchcommodity.ops.indicators._extremes import midprice as midprice
from torchcommodity.ops.indicators._extremes import min as min
from torchcommodity.ops.indicators._extremes import minindex as minindex
from torchcommodity.ops.indicators._extremes import minmax as minmax
from torchcommodity.ops.indicators._extremes import minmaxindex as minmaxindex
from torchcommodity.ops.indicators._indicator import lookback as lookback
from torchcommodity.ops.indicators._oscillators import ERI as ERI
from torchcommodity.ops.indicators._oscillators import ac as ac
from torchcommodity.ops.indicators._oscillators import ao as ao
from torchcommodity.ops.indicators._oscillators import cci as cci
from torchcommodity.ops.indicators._oscillators import coppock as coppock
from torchcommodity.ops.indicators._oscillators import dpo as dpo
from torchcommodity.ops.indicators._oscillators import eri as eri
from torchcommodity.ops.indicators._oscillators import fosc as fosc
from torchcommodity.ops.indicators._oscillators import qstick as qstick
from torchcommodity.ops.indicators._oscillators import tsi as tsi
from torchcommodity.ops.indicators._oscillators import ultosc as ultosc
from torchcommodity.ops.indicators._overlap import dema as dema
from torchcommodity.ops.indicators._overlap import ema as ema
from torchcommodity.ops.indicators._overlap import hma as hma
from torchcommodity.ops.indicators._overlap import kama as kama
from torchcommodity.ops.indicators._overlap import ma as ma
from torchcommodity.ops.indicators._overlap import mavp as mavp
from torchcommodity.ops.indicators._overlap import rma as rma
from torchcommodity.ops.indicators._overlap import sma as sma
from torchcommodity.ops.indicators._overlap import t3 as t3
from torchcommodity.ops.indicators._overlap import tema as tema
from torchcommodity.ops.indicators._overlap import trima as trima
from torchcommodity.ops.indicators._overlap import vwma as vwma
from torchcommodity.ops.indicators._overlap import wma as wma
from torchcommodity.ops.indicators._overlap import zlema as zlema
from torchcommodity.ops.indicators._price import HeikinAshi as HeikinAshi
from torchcommodity.ops.indicators._price import avgprice as avgprice
from torchcommodity.ops.indicators._price import ha as ha
from torchcommodity.ops.indicators._price import medprice as medprice
from torchcommodity.ops.indicators._price import typprice as typprice
from torchcommodity.ops.indicators._price import wclprice as wclprice
from torchcommodity.ops.indicators._rates import bop as bop
from torchcommodity.ops.indicators._rates import mom as mom
from torchcommodity.ops.indicators._rates import roc as roc
from torchcommodity.ops.indicators._rates import rocp as rocp
from torchcommodity.ops.indicators._rates import rocr as rocr
from torchcommodity.ops.indicators._rates import rocr100 as rocr100
from torchcommodity.ops.indicators._statistic import avgdev as avgdev
from torchcommodity.ops.indicators._statistic import beta as beta
from torchcommodity.ops.indicators._statistic import correl as correl
from torchcommodity.ops.indicators._statistic import linearreg as linearreg
from torchcommodity.ops.indicators._statistic import linearreg_angle as linearreg_angle
from torchcommodity.ops.indicators._statistic import linearreg_intercept as linearreg_intercept
from torchcommodity.ops.indicators._statistic import linearreg_slope as linearreg_slope
from torchcommodity.ops.indicators._statistic import percentrank as percentrank
from torchcommodity.ops.indicators._statistic import stddev as stddev
from torchcommodity.ops.indicators._statistic import tsf as tsf
from torchcommodity.ops.indicators._statistic import var as var
from torchcommodity.ops.indicators._stochastic import KDJ as KDJ
from torchcommodity.ops.indicators._stochastic import SMI as SMI
from torchcommodity.ops.indicators._stochastic import Stoch as Stoch
from torchcommodity.ops.indicators._stochastic import StochF as StochF
from torchcommodity.ops.indicators._stochastic import kdj as kdj
from torchcommodity.ops.indicators._stochastic import smi as smi
from torchcommodity.ops.indicators._stochastic import stoch as stoch
from torchcommodity.ops.indicators._stochastic import stochf as stochf
from torchcommodity.ops.indicators._stochastic import stochrsi as stochrsi
from torchcommodity.ops.indicators._stochastic import willr as willr
from torchcommodity.ops.indicators._stops import sar as sar
from torchcommodity.ops.indicators._stops import sarext as sarext
from torchcommodity.ops.indicators._strength import cmo as cmo
from torchcommodity.ops.indicators._strength import cmou as cmou
from torchcommodity.ops.indicators._strength import imi as imi
from torchcommodity.ops.indicators._strength import mfi as mfi
from torchcommodity.ops.indicators._strength import rsi as rsi
from torchcommodity.ops.indicators._trend import Aroon as Aroon
from torchcommodity.ops.indicators._trend import Fractal as Fractal
from torchcommodity.ops.indicators._trend import Vortex as Vortex
from torchcommodity.ops.indicators._trend import aroon as aroon
from torchcommodity.ops.indicators._trend import aroonosc as aroonosc
from torchcommodity.ops.indicators._trend import er as er
from torchcommodity.ops.indicators._trend import fractal as fractal
from torchcommodity.ops.indicators._trend import vhf as vhf
from torchcommodity.ops.indicators._trend import vortex as vortex
from torchcommodity.ops.indicators._volatility import adr as adr
from torchcommodity.ops.indicators._volatility import atr as atr
from torchcommodity.ops.indicators._volatility import cvi as cvi
from torchcommodity.ops.indicators._volatility import massi as massi
from torchcommodity.ops.indicators._volatility import natr as natr
from torchcommodity.ops.indicators._volatility import rvi as rvi
from torchcommodity.ops.indicators._volatility import trange as trange
from torchcommodity.ops.indicators._volume import ad as ad
from torchcommodity.ops.indicators._volume import adosc as adosc
from torchcommodity.ops.indicators._volume import cmf as cmf
from torchcommodity.ops.indicators._volume import efi as efi
from torchcommodity.ops.indicators._volume import marketfi as marketfi
from torchcommodity.ops.indicators._volume import obv as obv
from torchcommodity.ops.indicators._volume import wad as wad
from torchcommodity.ops.indicators._volume_index import nvi as nvi
from torchcommodity.ops.indicators._volume_index import pvi as pvi
from torchcommodity.ops.indicators._volume_index import pvo as pvo
from torchcommodity.ops.indicators._volume_index import pvt as pvt
from torchcommodity.ops.indicators._volume_index import rvol as rvol
from torchcommodity.ops.indicators._volume_index import vwap as vwap

__all__ = [
    "ERI",
    "KDJ",
    "MACD",
    "SMI",
    "Aroon",
    "Bands",
    "Fractal",
    "HeikinAshi",
    "MinMax",
    "MinMaxIndex",
    "Stoch",
    "StochF",
    "Vortex",
    "ac",
    "accbands",
    "ad",
    "add",
    "adosc",
    "adr",
    "adx",
    "adxr",
    "ao",
    "apo",
    "aroon",
    "aroonosc",
    "atr",
    "avgdev",
    "avgprice",
    "bbands",
    "beta",
    "bop",
    "cci",
    "cmf",
    "cmo",
    "cmou",
    "coppock",
    "correl",
    "cumsum",
    "cvi",
    "dema",
    "div",
    "donchian",
    "dpo",
    "dx",
    "efi",
    "ema",
    "er",
    "eri",
    "fosc",
    "fractal",
    "ha",
    "hma",
    "imi",
    "kama",
    "kc",
    "kdj",
    "linearreg",
    "linearreg_angle",
    "linearreg_intercept",
    "linearreg_slope",
    "lookback",
    "ma",
    "macd",
    "macdext",
    "macdfix",
    "marketfi",
    "massi",
    "mavp",
    "max",
    "maxindex",
    "medprice",
    "mfi",
    "midpoint",
    "midprice",
    "min",
    "minindex",
    "minmax",
    "minmaxindex",
    "minus_di",
    "minus_dm",
    "mom",
    "mult",
    "natr",
    "nvi",
    "obv",
    "percentrank",
    "plus_di",
    "plus_dm",
    "ppo",
    "pvi",
    "pvo",
    "pvt",
    "qstick",
    "rma",
    "roc",
    "rocp",
    "rocr",
    "rocr100",
    "rsi",
    "rvi",
    "rvol",
    "sar",
    "sarext",
    "sma",
    "smi",
    "stddev",
    "stoch",
    "stochf",
    "stochrsi",
    "sub",
    "sum",
    "t3",
    "tema",
    "trange",
    "trima",
    "trix",
    "tsf",
    "tsi",
    "typprice",
    "ultosc",
    "var",
    "vhf",
    "vortex",
    "vwap",
    "vwma",
    "wad",
    "wclprice",
    "willr",
    "wma",
    "zlema",
]
