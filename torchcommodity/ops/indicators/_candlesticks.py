"""The candlestick patterns (TA-Lib: pattern recognition): their names, documentation and examples."""

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import last_candles
from torchcommodity.ops.indicators._patterns import PATTERNS
from torchcommodity.ops.indicators._table import table_operator
from torchcommodity.ops.series import Operator, skip

BULKOWSKI = "Bulkowski (2008), Encyclopedia of Candlestick Charts"
CHESLER = "Chesler (2004), Active Trader, April"
NISON = "Nison (1991), Japanese Candlestick Charting Techniques"
P = ParamSpec("P")

# rows by which TA-Lib's warm-up is longer than the conditions need
LONGER_WARMUP = {
    "cdl3blackcrows": 1, "cdl3outside": 1, "cdlengulfing": 1, "cdlgapsidesidewhite": 1, "cdlhammer": 1,
    "cdlhangingman": 1, "cdlinvertedhammer": 1, "cdlladderbottom": 3, "cdlseparatinglines": 1, "cdlshootingstar": 1,
    "cdltasukigap": 1,
}  # fmt: skip


def signal(name: str, prices: tuple[Tensor, Tensor, Tensor, Tensor], *penetration: float) -> Tensor:
    """The signal of a pattern's row, on as many candles as it names."""
    pattern = PATTERNS[name]
    candles = last_candles(len(inspect.signature(pattern).parameters) - len(penetration), *prices)
    result = pattern(*candles, *penetration)
    return skip(result, LONGER_WARMUP[name]) if name in LONGER_WARMUP else result


def of_prices(name: str, open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    return signal(name, (open, high, low, close))


def piercing_30(name: str, open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    return signal(name, (open, high, low, close), penetration)


def piercing_50(name: str, open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.5) -> Tensor:
    return signal(name, (open, high, low, close), penetration)


def pattern(
    definition: Callable[Concatenate[str, P], Tensor], name: str, source: str, warmup: int, value: int,
    description: str, candles: list[tuple[float, float, float, float]],
) -> Operator[P, Tensor]:  # fmt: skip
    """The operator of a row of `PATTERNS`; `value` is that of the last of `candles`, an example."""
    summary, _, note = description.removesuffix(".").partition(". ")
    dtype = torch.int16 if "hikkake" in name else torch.int8  # they reach 200
    doc = f"""{summary}.

    {note and f"{note}. "}TA-Lib {name.upper()}; {source}. Warm-up: {warmup} rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10  # open, high, low, close
        >>> candles += {candles}
        >>> indicators.{name}(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([{value}], dtype={dtype})
    """
    return table_operator(definition, name, doc, dtype)


# fmt: off
cdl2crows = pattern(of_prices, "cdl2crows", BULKOWSKI, 12, -100,
    "Two crows: a black body above a long white one, then a black one down into the white body.",
    [(30, 35, 29, 34), (39, 40, 35, 36), (38, 39, 31, 32)])
cdl3blackcrows = pattern(of_prices, "cdl3blackcrows", NISON, 13, -100,
    "Three black crows: three falling black candles without lower shadows, each from within the one before.",
    [(30, 33, 29, 32), (31, 32, 28, 28), (30, 30, 26, 26), (28, 28, 24, 24)])
cdl3inside = pattern(of_prices, "cdl3inside", BULKOWSKI, 12, 100,
    "Three inside up or down: a harami, then a close beyond the first open. 100 up, -100 down.",
    [(32, 33, 26, 27), (28, 31, 27, 30), (30, 34, 29, 33)])
cdl3linestrike = pattern(of_prices, "cdl3linestrike", BULKOWSKI, 8, 100,
    "Three-line strike: three candles of one color in a row, then one that covers them all. 100 after a rise, "
    "-100 after a fall.",
    [(30, 33, 29, 32), (31, 35, 30, 34), (33, 37, 32, 36), (37, 38, 28, 29)])
cdl3outside = pattern(of_prices, "cdl3outside", BULKOWSKI, 3, 100,
    "Three outside up or down: an engulfing pattern, then a close further on. 100 up, -100 down.",
    [(32, 33, 29, 30), (29, 34, 28, 33), (33, 36, 32, 35)])
cdl3starsinsouth = pattern(of_prices, "cdl3starsinsouth", BULKOWSKI, 12, 100,
    "Three stars in the south: black candles, each smaller than and within the low of the one before.",
    [(36, 37, 25, 31), (34, 35, 27, 31), (31, 31, 29, 29)])
cdl3whitesoldiers = pattern(of_prices, "cdl3whitesoldiers", NISON, 12, 100,
    "Three white soldiers: three rising white candles without upper shadows, not much smaller each.",
    [(30, 33, 29, 33), (32, 36, 31, 36), (35, 39, 34, 39)])
cdlabandonedbaby = pattern(piercing_30, "cdlabandonedbaby", NISON, 12, 100,
    "Abandoned baby: a doji with gaps on both sides, then a move back into the long first body. 100 bullish, "
    "-100 bearish. `penetration` is a share of the first body.",
    [(32, 33, 27, 28), (25, 26, 24, 25), (28, 33, 27, 32)])
cdladvanceblock = pattern(of_prices, "cdladvanceblock", NISON, 12, -100,
    "Advance block: three rising white candles that lose strength.",
    [(30, 34, 29, 34), (33, 37, 32, 36), (35, 39, 34, 37)])
cdlbelthold = pattern(of_prices, "cdlbelthold", NISON, 10, 100,
    "Belt hold: a long body that opens at the end of its range. 100 white, -100 black.",
    [(32, 37, 32, 36)])
cdlbreakaway = pattern(of_prices, "cdlbreakaway", BULKOWSKI, 14, 100,
    "Breakaway: a gap after a long candle and a further move, which the last candle takes back up to the gap. "
    "100 bullish, -100 bearish.",
    [(36, 37, 31, 32), (30, 31, 28, 29), (29, 30, 27, 28), (28, 29, 26, 27), (27, 32, 26, 31)])
cdlclosingmarubozu = pattern(of_prices, "cdlclosingmarubozu", NISON, 10, 100,
    "Closing marubozu: a long body that closes at the end of its range. 100 white, -100 black.",
    [(32, 37, 31, 37)])
cdlconcealbabyswall = pattern(of_prices, "cdlconcealbabyswall", BULKOWSKI, 13, 100,
    "Concealing baby swallow: two black marubozu, a black candle with a gap, and one that covers it.",
    [(36, 36, 33, 33), (33, 33, 30, 30), (28, 31, 26, 27), (33, 33, 25, 25)])
cdlcounterattack = pattern(of_prices, "cdlcounterattack", NISON, 11, 100,
    "Counterattack: two long bodies of opposite colors with equal closes. 100 bullish, -100 bearish.",
    [(34, 35, 29, 30), (26, 31, 25, 30)])
cdldarkcloudcover = pattern(piercing_50, "cdldarkcloudcover", NISON, 11, -100,
    "Dark cloud cover: a black body from above a long white one deep into it. `penetration` is a share of the "
    "white body.",
    [(30, 35, 30, 34), (36, 36, 30, 31)])
cdldoji = pattern(of_prices, "cdldoji", NISON, 10, 100,
    "Doji: the market closed where it opened. 100, which is neither bullish nor bearish.",
    [(32, 33, 31, 32)])
cdldojistar = pattern(of_prices, "cdldojistar", NISON, 11, -100,
    "Doji star: a doji beyond a long body, in the direction of its color. 100 bullish, -100 bearish.",
    [(32, 37, 31, 36), (37, 38, 36, 37)])
cdldragonflydoji = pattern(of_prices, "cdldragonflydoji", NISON, 10, 100,
    "Dragonfly doji: a doji at the top of its range, with a lower shadow only.",
    [(32, 32, 29, 32)])
cdlengulfing = pattern(of_prices, "cdlengulfing", NISON, 2, 100,
    "Engulfing: a body that covers the one before it, of the other color. 100 bullish, -100 bearish; 80 and -80 "
    "where the bodies share an end.",
    [(32, 33, 29, 30), (29, 34, 28, 33)])
cdleveningdojistar = pattern(piercing_30, "cdleveningdojistar", NISON, 12, -100,
    "Evening doji star: a doji above a long white body, then a fall into the white body. `penetration` is a "
    "share of the white body.",
    [(30, 36, 29, 35), (37, 38, 36, 37), (37, 38, 31, 32)])
cdleveningstar = pattern(piercing_30, "cdleveningstar", NISON, 12, -100,
    "Evening star: a body that is not long above a long white one, then a fall into the white body. "
    "`penetration` is a share of the white body.",
    [(30, 36, 29, 35), (37, 39, 36, 38), (37, 38, 31, 32)])
cdlgapsidesidewhite = pattern(of_prices, "cdlgapsidesidewhite", NISON, 7, 100,
    "Gap side-by-side white lines: two white candles alike, both beyond a gap. 100 above the gap, -100 below "
    "it.",
    [(30, 33, 29, 32), (34, 37, 33, 36), (34, 37, 33, 36)])
cdlgravestonedoji = pattern(of_prices, "cdlgravestonedoji", NISON, 10, 100,
    "Gravestone doji: a doji at the bottom of its range, with an upper shadow only. 100, though it is bearish.",
    [(32, 35, 32, 32)])
cdlhammer = pattern(of_prices, "cdlhammer", NISON, 11, 100,
    "Hammer: a short body with a long lower shadow, at or below the low before.",
    [(32, 33, 27, 28), (27, 28, 23, 28)])
cdlhangingman = pattern(of_prices, "cdlhangingman", NISON, 11, -100,
    "Hanging man: a short body with a long lower shadow, at or above the high before.",
    [(32, 36, 31, 36), (36, 37, 32, 37)])
cdlharami = pattern(of_prices, "cdlharami", NISON, 11, 100,
    "Harami: a body that is not long within a long body before it. 100 bullish, -100 bearish, against the color "
    "of the long body; 80 and -80 where the bodies share an end.",
    [(32, 33, 26, 27), (29, 31, 28, 30)])
cdlharamicross = pattern(of_prices, "cdlharamicross", NISON, 11, 100,
    "Harami cross: a doji within a long body before it. 100 bullish, -100 bearish, against the color of the "
    "long body; 80 and -80 where the bodies share an end.",
    [(32, 33, 26, 27), (29, 31, 28, 29)])
cdlhighwave = pattern(of_prices, "cdlhighwave", NISON, 10, 100,
    "High wave: a short body with two shadows of more than twice its length. 100 white, -100 black.",
    [(32, 37, 28, 33)])
cdlhikkake = pattern(of_prices, "cdlhikkake", CHESLER, 5, 200,
    "Hikkake: a move out of an inside candle, which is often false; 200 when the price turns within three rows. "
    "100 after a break down, which is bullish, -100 after one up; 200 and -200 at the first close beyond the "
    "other side of the inside candle, within three rows.",
    [(30, 36, 28, 34), (33, 35, 30, 32), (32, 33, 28, 29), (29, 37, 29, 36)])
cdlhikkakemod = pattern(of_prices, "cdlhikkakemod", CHESLER, 10, 200,
    "Modified hikkake: a hikkake after two inside candles, the first with its close near the end that breaks. "
    "100 after a break down, which is bullish, -100 after one up; 200 and -200 at the first close beyond the "
    "other side of the inside candle, within three rows.",
    [(28, 38, 26, 36), (34, 37, 29, 30), (31, 35, 30, 33), (32, 34, 28, 29), (30, 37, 29, 36)])
cdlhomingpigeon = pattern(of_prices, "cdlhomingpigeon", BULKOWSKI, 11, 100,
    "Homing pigeon: a black body that is not long within a long black one.",
    [(32, 33, 26, 27), (30, 31, 28, 29)])
cdlidentical3crows = pattern(of_prices, "cdlidentical3crows", NISON, 12, -100,
    "Identical three crows: three falling black candles, each from the close of the one before.",
    [(34, 35, 31, 31), (31, 32, 28, 28), (28, 29, 25, 25)])
cdlinneck = pattern(of_prices, "cdlinneck", NISON, 11, -100,
    "In-neck line: a white candle from below a long black one up to its close.",
    [(32, 33, 27, 29), (26, 30, 25, 29)])
cdlinvertedhammer = pattern(of_prices, "cdlinvertedhammer", NISON, 11, 100,
    "Inverted hammer: a short body with a long upper shadow, below the body before.",
    [(32, 33, 27, 28), (26, 30, 26, 27)])
cdlkicking = pattern(of_prices, "cdlkicking", BULKOWSKI, 11, 100,
    "Kicking: two marubozu of opposite colors with a gap between them. 100 bullish, -100 bearish.",
    [(32, 32, 27, 27), (34, 39, 34, 39)])
cdlkickingbylength = pattern(of_prices, "cdlkickingbylength", BULKOWSKI, 11, -100,
    "Kicking, with the sign of the longer marubozu. 100 white, -100 black.",
    [(32, 32, 27, 27), (34, 38, 34, 38)])
cdlladderbottom = pattern(of_prices, "cdlladderbottom", BULKOWSKI, 14, 100,
    "Ladder bottom: three falling black candles, one with an upper shadow, then a white one above its high.",
    [(38, 39, 35, 36), (36, 37, 33, 34), (34, 35, 31, 32), (32, 34, 29, 30), (33, 37, 32, 36)])
cdllongleggeddoji = pattern(of_prices, "cdllongleggeddoji", NISON, 10, 100,
    "Long-legged doji: a doji with a shadow longer than its body. 100, which is neither bullish nor bearish.",
    [(32, 35, 31, 32)])
cdllongline = pattern(of_prices, "cdllongline", BULKOWSKI, 10, 100,
    "Long line: a long body with short shadows. 100 white, -100 black.",
    [(32, 36.5, 31.5, 36)])
cdlmarubozu = pattern(of_prices, "cdlmarubozu", NISON, 10, 100,
    "Marubozu: a long body without shadows. 100 white, -100 black.",
    [(32, 37, 32, 37)])
cdlmatchinglow = pattern(of_prices, "cdlmatchinglow", BULKOWSKI, 6, 100,
    "Matching low: two black candles with equal closes.",
    [(32, 33, 29, 30), (31, 32, 29, 30)])
cdlmathold = pattern(piercing_50, "cdlmathold", NISON, 14, 100,
    "Mat hold: a long white candle, three short ones that fall a little from above it, then a new high. "
    "`penetration` is the share of the long body that the short ones may take back.",
    [(30, 36, 29, 35), (37, 38, 35, 36), (36, 37, 33, 34), (35, 36, 33, 34), (35, 40, 34, 39)])
cdlmorningdojistar = pattern(piercing_30, "cdlmorningdojistar", NISON, 12, 100,
    "Morning doji star: a doji below a long black body, then a rise into the black body. `penetration` is a "
    "share of the black body.",
    [(32, 33, 26, 27), (25, 26, 24, 25), (25, 31, 24, 30)])
cdlmorningstar = pattern(piercing_30, "cdlmorningstar", NISON, 12, 100,
    "Morning star: a body that is not long below a long black one, then a rise into the black body. "
    "`penetration` is a share of the black body.",
    [(32, 33, 26, 27), (25, 26, 23, 24), (25, 31, 24, 30)])
cdlonneck = pattern(of_prices, "cdlonneck", NISON, 11, -100,
    "On-neck line: a white candle from below a long black one up to its low.",
    [(32, 33, 27, 29), (26, 28, 25, 27)])
cdlpiercing = pattern(of_prices, "cdlpiercing", NISON, 11, 100,
    "Piercing line: a long white body from below a long black one to above its middle.",
    [(32, 33, 27, 28), (26, 32, 26, 31)])
cdlrickshawman = pattern(of_prices, "cdlrickshawman", NISON, 10, 100,
    "Rickshaw man: a doji with two long shadows and its body near the middle of its range. 100, which is "
    "neither bullish nor bearish.",
    [(32, 34, 30, 32)])
cdlrisefall3methods = pattern(of_prices, "cdlrisefall3methods", NISON, 14, 100,
    "Rising or falling three methods: three short candles against a long one, then a long one further on. 100 "
    "rising, -100 falling.",
    [(30, 36, 29, 35), (34, 35, 32, 33), (33, 34, 31, 32), (32, 33, 30, 31), (32, 38, 31, 37)])
cdlseparatinglines = pattern(of_prices, "cdlseparatinglines", NISON, 11, 100,
    "Separating lines: a belt hold from the open of the candle before, which has the other color. 100 bullish, "
    "-100 bearish.",
    [(32, 33, 28, 29), (32, 37, 32, 36)])
cdlshootingstar = pattern(of_prices, "cdlshootingstar", NISON, 11, -100,
    "Shooting star: a short body with a long upper shadow, above the body before.",
    [(32, 37, 31, 36), (37, 41, 37, 38)])
cdlshortline = pattern(of_prices, "cdlshortline", BULKOWSKI, 10, 100,
    "Short line: a short body with short shadows. 100 white, -100 black.",
    [(32, 33.5, 31.5, 33)])
cdlspinningtop = pattern(of_prices, "cdlspinningtop", NISON, 10, 100,
    "Spinning top: a short body with two longer shadows. 100 white, -100 black.",
    [(32, 35, 30, 33)])
cdlstalledpattern = pattern(of_prices, "cdlstalledpattern", NISON, 12, -100,
    "Stalled pattern: two long white candles, then a short one that rides on the second.",
    [(30, 34, 29, 34), (33, 38, 32, 38), (38, 39, 37, 39)])
cdlsticksandwich = pattern(of_prices, "cdlsticksandwich", BULKOWSKI, 7, 100,
    "Stick sandwich: a white candle between two black ones with equal closes.",
    [(32, 33, 28, 29), (31, 34, 30, 33), (33, 34, 28, 29)])
cdltakuri = pattern(of_prices, "cdltakuri", BULKOWSKI, 10, 100,
    "Takuri: a dragonfly doji with a lower shadow of more than twice its body.",
    [(32, 32, 28, 32)])
cdltasukigap = pattern(of_prices, "cdltasukigap", NISON, 7, 100,
    "Tasuki gap: a candle beyond a gap, then one of the other color and of like size back into the gap. 100 "
    "above the gap, -100 below it.",
    [(30, 33, 29, 32), (34, 37, 33, 36), (35, 36, 32, 33)])
cdlthrusting = pattern(of_prices, "cdlthrusting", NISON, 11, -100,
    "Thrusting line: a white candle from below a long black one into its lower half.",
    [(32, 33, 27, 28), (26, 31, 25, 30)])
cdltristar = pattern(of_prices, "cdltristar", NISON, 12, -100,
    "Tri-star: three doji, the middle one above or below the others. 100 bullish, -100 bearish.",
    [(32, 33, 31, 32), (35, 36, 34, 35), (33, 34, 32, 33)])
cdlunique3river = pattern(of_prices, "cdlunique3river", NISON, 12, 100,
    "Unique three river bottom: a long black candle, a black one with a lower low inside it, a short white one.",
    [(34, 35, 28, 29), (32, 33, 26, 31), (28, 30, 27, 29)])
cdlupsidegap2crows = pattern(of_prices, "cdlupsidegap2crows", NISON, 12, -100,
    "Upside gap two crows: a black body above a long white one, then a larger one around it.",
    [(30, 35, 29, 34), (37, 38, 35, 36), (38, 39, 34, 35)])
cdlxsidegap3methods = pattern(of_prices, "cdlxsidegap3methods", BULKOWSKI, 2, 100,
    "Upside or downside gap three methods: two candles of one color with a gap, which the third closes. 100 "
    "upside, -100 downside.",
    [(30, 33, 29, 32), (34, 37, 33, 36), (35, 36, 30, 31)])
# fmt: on

__all__ = [
    "cdl2crows", "cdl3blackcrows", "cdl3inside", "cdl3linestrike", "cdl3outside", "cdl3starsinsouth",
    "cdl3whitesoldiers", "cdlabandonedbaby", "cdladvanceblock", "cdlbelthold", "cdlbreakaway", "cdlclosingmarubozu",
    "cdlconcealbabyswall", "cdlcounterattack", "cdldarkcloudcover", "cdldoji", "cdldojistar", "cdldragonflydoji",
    "cdlengulfing", "cdleveningdojistar", "cdleveningstar", "cdlgapsidesidewhite", "cdlgravestonedoji", "cdlhammer",
    "cdlhangingman", "cdlharami", "cdlharamicross", "cdlhighwave", "cdlhikkake", "cdlhikkakemod", "cdlhomingpigeon",
    "cdlidentical3crows", "cdlinneck", "cdlinvertedhammer", "cdlkicking", "cdlkickingbylength", "cdlladderbottom",
    "cdllongleggeddoji", "cdllongline", "cdlmarubozu", "cdlmatchinglow", "cdlmathold", "cdlmorningdojistar",
    "cdlmorningstar", "cdlonneck", "cdlpiercing", "cdlrickshawman", "cdlrisefall3methods", "cdlseparatinglines",
    "cdlshootingstar", "cdlshortline", "cdlspinningtop", "cdlstalledpattern", "cdlsticksandwich", "cdltakuri",
    "cdltasukigap", "cdlthrusting", "cdltristar", "cdlunique3river", "cdlupsidegap2crows", "cdlxsidegap3methods",
]  # fmt: skip
