"""Technical indicators on panels (..., T, N), with the names (in lower case), arguments and defaults of TA-Lib.

The following holds for all of them:

**Shapes.** Each panel is (..., T, N): leading axes are batch, then time, then asset. All panels of a call, and all
outputs, have the same shape. Values are computed in float64 and returned in the dtype of the panels. Outputs are in the
unit of the price unless stated otherwise.

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

**Candlesticks.** `cdldoji` and the other names in cdl are TA-Lib's patterns with its default candle settings: 100
where the pattern is there (bullish, if it has a direction), -100 where it is bearish, else 0. int8; int16 for the two
hikkake, which reach 200. 0 in the warm-up, and where a candle that the pattern looks at, or those whose mean it is
measured by, is missing. Not differentiable.

**Live updates.** `state = rsi.start(history)`, then `state, y = rsi.step(state, row)` for each new row: the bits of one
call on all rows. See `ops.series.Operator`.

**Speed.** Each indicator is a formula of `ops.series`: one native pass over time computes all of its steps.
`python benchmarks/indicators.py` times every function against TA-Lib's.
"""

# ruff: noqa: F405 - the 61 candlestick patterns are imported by a star
from torchcommodity.ops.indicators._bands import Bands, accbands, bbands, donchian, kc
from torchcommodity.ops.indicators._candlesticks import *  # noqa: F403
from torchcommodity.ops.indicators._convergence import MACD, apo, macd, macdext, macdfix, ppo, trix
from torchcommodity.ops.indicators._cycle import (
    MAMA,
    Phasor,
    Sine,
    ht_dcperiod,
    ht_dcphase,
    ht_phasor,
    ht_sine,
    ht_trendline,
    ht_trendmode,
    mama,
)
from torchcommodity.ops.indicators._directional import adx, adxr, dx, minus_di, minus_dm, plus_di, plus_dm
from torchcommodity.ops.indicators._extremes import (
    MinMax,
    MinMaxIndex,
    max,
    maxindex,
    midpoint,
    midprice,
    min,
    minindex,
    minmax,
    minmaxindex,
)
from torchcommodity.ops.indicators._lookback import lookback
from torchcommodity.ops.indicators._math import (
    acos,
    add,
    asin,
    atan,
    ceil,
    cos,
    cosh,
    cumsum,
    div,
    exp,
    floor,
    ln,
    log10,
    mult,
    sin,
    sinh,
    sqrt,
    sub,
    sum,
    tan,
    tanh,
)
from torchcommodity.ops.indicators._moving_average import ma, mavp
from torchcommodity.ops.indicators._oscillators import ERI, ac, ao, cci, coppock, dpo, eri, fosc, qstick, tsi, ultosc
from torchcommodity.ops.indicators._overlap import (
    dema,
    ema,
    hma,
    kama,
    rma,
    sma,
    t3,
    tema,
    trima,
    vwma,
    wma,
    zlema,
)
from torchcommodity.ops.indicators._price import HeikinAshi, avgprice, ha, medprice, typprice, wclprice
from torchcommodity.ops.indicators._rates import bop, mom, roc, rocp, rocr, rocr100
from torchcommodity.ops.indicators._statistic import (
    avgdev,
    beta,
    correl,
    linearreg,
    linearreg_angle,
    linearreg_intercept,
    linearreg_slope,
    percentile,
    percentrank,
    stddev,
    tsf,
    var,
)
from torchcommodity.ops.indicators._stochastic import KDJ, SMI, Stoch, StochF, kdj, smi, stoch, stochf, stochrsi, willr
from torchcommodity.ops.indicators._stops import SuperTrend, sar, sarext, supertrend
from torchcommodity.ops.indicators._strength import cmo, cmou, imi, mfi, rsi
from torchcommodity.ops.indicators._trend import Aroon, Fractal, Vortex, aroon, aroonosc, er, fractal, vhf, vortex
from torchcommodity.ops.indicators._volatility import adr, atr, cvi, massi, natr, rvi, trange
from torchcommodity.ops.indicators._volume import ad, adosc, cmf, efi, marketfi, obv, wad
from torchcommodity.ops.indicators._volume_index import nvi, pvi, pvo, pvt, rvol, vwap

__all__ = [
    "ERI",
    "KDJ",
    "MACD",
    "MAMA",
    "SMI",
    "Aroon",
    "Bands",
    "Fractal",
    "HeikinAshi",
    "MinMax",
    "MinMaxIndex",
    "Phasor",
    "Sine",
    "Stoch",
    "StochF",
    "SuperTrend",
    "Vortex",
    "ac",
    "accbands",
    "acos",
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
    "asin",
    "atan",
    "atr",
    "avgdev",
    "avgprice",
    "bbands",
    "beta",
    "bop",
    "cci",
    "cdl2crows",
    "cdl3blackcrows",
    "cdl3inside",
    "cdl3linestrike",
    "cdl3outside",
    "cdl3starsinsouth",
    "cdl3whitesoldiers",
    "cdlabandonedbaby",
    "cdladvanceblock",
    "cdlbelthold",
    "cdlbreakaway",
    "cdlclosingmarubozu",
    "cdlconcealbabyswall",
    "cdlcounterattack",
    "cdldarkcloudcover",
    "cdldoji",
    "cdldojistar",
    "cdldragonflydoji",
    "cdlengulfing",
    "cdleveningdojistar",
    "cdleveningstar",
    "cdlgapsidesidewhite",
    "cdlgravestonedoji",
    "cdlhammer",
    "cdlhangingman",
    "cdlharami",
    "cdlharamicross",
    "cdlhighwave",
    "cdlhikkake",
    "cdlhikkakemod",
    "cdlhomingpigeon",
    "cdlidentical3crows",
    "cdlinneck",
    "cdlinvertedhammer",
    "cdlkicking",
    "cdlkickingbylength",
    "cdlladderbottom",
    "cdllongleggeddoji",
    "cdllongline",
    "cdlmarubozu",
    "cdlmatchinglow",
    "cdlmathold",
    "cdlmorningdojistar",
    "cdlmorningstar",
    "cdlonneck",
    "cdlpiercing",
    "cdlrickshawman",
    "cdlrisefall3methods",
    "cdlseparatinglines",
    "cdlshootingstar",
    "cdlshortline",
    "cdlspinningtop",
    "cdlstalledpattern",
    "cdlsticksandwich",
    "cdltakuri",
    "cdltasukigap",
    "cdlthrusting",
    "cdltristar",
    "cdlunique3river",
    "cdlupsidegap2crows",
    "cdlxsidegap3methods",
    "ceil",
    "cmf",
    "cmo",
    "cmou",
    "coppock",
    "correl",
    "cos",
    "cosh",
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
    "exp",
    "floor",
    "fosc",
    "fractal",
    "ha",
    "hma",
    "ht_dcperiod",
    "ht_dcphase",
    "ht_phasor",
    "ht_sine",
    "ht_trendline",
    "ht_trendmode",
    "imi",
    "kama",
    "kc",
    "kdj",
    "linearreg",
    "linearreg_angle",
    "linearreg_intercept",
    "linearreg_slope",
    "ln",
    "log10",
    "lookback",
    "ma",
    "macd",
    "macdext",
    "macdfix",
    "mama",
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
    "percentile",
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
    "sin",
    "sinh",
    "sma",
    "smi",
    "sqrt",
    "stddev",
    "stoch",
    "stochf",
    "stochrsi",
    "sub",
    "sum",
    "supertrend",
    "t3",
    "tan",
    "tanh",
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
