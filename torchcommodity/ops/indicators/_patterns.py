"""Conditions of the candlestick patterns, a row for each; `_candles.py` says what they mean.

A row is a function of the last candles, as many as the pattern has, the oldest first.
"""

from collections.abc import Callable

from torch import Tensor

from torchcommodity.ops.indicators._candles import (
    about,
    bearish,
    between,
    bullish,
    by_color,
    two_sided,
    with_confirmation,
)
from torchcommodity.ops.series import maximum, where

PATTERNS: dict[str, Callable[..., Tensor]] = {
    # one candle
    "cdldoji": lambda candle: bullish(candle.is_doji),
    "cdldragonflydoji": lambda candle: bullish(
        candle.is_doji, candle.lacks_upper_shadow, candle.lower_shadow > candle.tiny
    ),
    "cdlgravestonedoji": lambda candle: bullish(
        candle.is_doji, candle.lacks_lower_shadow, candle.upper_shadow > candle.tiny
    ),
    "cdllongleggeddoji": lambda candle: bullish(
        candle.is_doji, (candle.lower_shadow > candle.body) | (candle.upper_shadow > candle.body)
    ),
    "cdlrickshawman": lambda candle: bullish(candle.is_doji, candle.has_long_shadows, candle.is_centered),
    "cdltakuri": lambda candle: bullish(
        candle.is_doji, candle.lacks_upper_shadow, candle.lower_shadow > 2 * candle.body
    ),
    "cdlspinningtop": lambda candle: by_color(candle, candle.is_short, candle.has_long_shadows),
    "cdlhighwave": lambda candle: by_color(
        candle, candle.is_short, candle.upper_shadow > 2 * candle.body, candle.lower_shadow > 2 * candle.body
    ),
    "cdlshortline": lambda candle: by_color(candle, candle.is_short, candle.has_short_shadows),
    "cdllongline": lambda candle: by_color(candle, candle.is_long, candle.has_short_shadows),
    "cdlmarubozu": lambda candle: by_color(candle, candle.is_marubozu),
    "cdlclosingmarubozu": lambda candle: by_color(candle, candle.is_long, candle.closes_at_end),
    "cdlbelthold": lambda candle: by_color(candle, candle.is_long, candle.opens_at_end),
    # a candle and the one before it
    "cdlhammer": lambda first, second: bullish(second.is_hammer, second.bottom <= first.low + first.near),
    "cdlhangingman": lambda first, second: bearish(second.is_hammer, second.bottom >= first.high - first.near),
    "cdlinvertedhammer": lambda first, second: bullish(second.is_inverted_hammer, second.gaps_below(first)),
    "cdlshootingstar": lambda first, second: bearish(second.is_inverted_hammer, second.gaps_above(first)),
    "cdldojistar": lambda first, second: -by_color(first, first.is_long & second.is_doji & second.gaps_ahead_of(first)),
    "cdlengulfing": lambda first, second: by_color(
        second,
        first.is_within(second) & ~second.is_within(first) & ~second.like(first),
        size=where(first.is_strictly_within(second), 100, 80),
    ),
    "cdlharami": lambda first, second: (
        -by_color(
            first,
            second.is_within(first) & first.is_long & ~second.is_long,
            size=where(second.is_strictly_within(first), 100, 80),
        )
    ),
    "cdlharamicross": lambda first, second: (
        -by_color(
            first,
            second.is_within(first) & first.is_long & second.is_doji,
            size=where(second.is_strictly_within(first), 100, 80),
        )
    ),
    "cdlhomingpigeon": lambda first, second: bullish(
        first.is_black & first.is_long & second.is_black & ~second.is_long,
        (second.open < first.open) & (second.close > first.close),
    ),
    "cdlmatchinglow": lambda first, second: bullish(
        first.is_black & second.is_black, about(second.close, first.close, first.tolerance)
    ),
    "cdlcounterattack": lambda first, second: by_color(
        second,
        first.is_long & second.is_long & ~second.like(first),
        about(second.close, first.close, first.tolerance),
    ),
    "cdlseparatinglines": lambda first, second: by_color(
        second,
        second.is_long & ~second.like(first) & second.opens_at_end,
        about(second.open, first.open, first.tolerance),
    ),
    "cdlkicking": lambda first, second: two_sided(
        first.is_black & second.is_white & second.is_above(first),
        first.is_white & second.is_black & second.is_below(first),
        first.is_marubozu & second.is_marubozu,
    ),
    "cdlkickingbylength": lambda first, second: (
        PATTERNS["cdlkicking"](first, second) * where(second.body > first.body, 1, -1)
    ),
    "cdlpiercing": lambda first, second: bullish(
        first.is_black & first.is_long & second.is_white & second.is_long,
        second.open < first.low,
        between(second.close, first.close + 0.5 * first.body, first.open),
    ),
    "cdldarkcloudcover": lambda first, second, penetration: bearish(
        first.is_white & first.is_long & second.is_black,
        second.open > first.high,
        between(second.close, first.open, first.close - penetration * first.body),
    ),
    "cdlonneck": lambda first, second: bearish(
        first.is_black & first.is_long & second.is_white,
        second.open < first.low,
        about(second.close, first.low, first.tolerance),
    ),
    "cdlinneck": lambda first, second: bearish(
        first.is_black & first.is_long & second.is_white,
        second.open < first.low,
        (second.close >= first.close) & (second.close <= first.close + first.tolerance),
    ),
    "cdlthrusting": lambda first, second: bearish(
        first.is_black & first.is_long & second.is_white,
        second.open < first.low,
        (second.close > first.close + first.tolerance) & (second.close <= first.close + 0.5 * first.body),
    ),
    # three candles
    "cdl3inside": lambda first, second, third: two_sided(
        first.is_black & third.is_white & (third.close > first.open),
        first.is_white & third.is_black & (third.close < first.open),
        first.is_long & ~second.is_long & second.is_strictly_within(first),
    ),
    "cdl3outside": lambda first, second, third: two_sided(
        second.is_white & (third.close > second.close),
        second.is_black & (third.close < second.close),
        ~second.like(first) & first.is_strictly_within(second),
    ),
    "cdlsticksandwich": lambda first, second, third: bullish(
        first.is_black & second.is_white & third.is_black,
        second.low > first.close,
        about(third.close, first.close, first.tolerance),
    ),
    "cdlgapsidesidewhite": lambda first, second, third: two_sided(
        second.gaps_above(first) & third.gaps_above(first),
        second.gaps_below(first) & third.gaps_below(first),
        second.is_white & third.is_white,
        about(third.body, second.body, second.near) & about(third.open, second.open, second.tolerance),
    ),
    "cdltasukigap": lambda first, second, third: two_sided(
        second.is_white & second.gaps_above(first) & between(third.close, first.top, second.open),
        second.is_black & second.gaps_below(first) & between(third.close, second.open, first.bottom),
        ~third.like(second) & third.opens_within(second),
        abs(second.body - third.body) < second.near,
    ),
    "cdlxsidegap3methods": lambda first, second, third: by_color(
        first,
        second.gaps_ahead_of(first),
        second.like(first) & ~third.like(second) & third.opens_within(second) & third.closes_within(first),
    ),
    "cdlmorningstar": lambda first, second, third, penetration: bullish(
        first.is_long & first.is_black,
        ~second.is_long & second.gaps_below(first),
        third.is_long & third.is_white & (third.close > first.close + penetration * first.body),
    ),
    "cdlmorningdojistar": lambda first, second, third, penetration: bullish(
        first.is_long & first.is_black,
        second.is_doji & second.gaps_below(first),
        third.is_long & third.is_white & (third.close > first.close + penetration * first.body),
    ),
    "cdleveningstar": lambda first, second, third, penetration: bearish(
        first.is_long & first.is_white,
        ~second.is_long & second.gaps_above(first),
        third.is_long & third.is_black & (third.close < first.close - penetration * first.body),
    ),
    "cdleveningdojistar": lambda first, second, third, penetration: bearish(
        first.is_long & first.is_white,
        second.is_doji & second.gaps_above(first),
        third.is_long & third.is_black & (third.close < first.close - penetration * first.body),
    ),
    "cdlabandonedbaby": lambda first, second, third, penetration: two_sided(
        first.is_black
        & second.is_below(first)
        & (third.is_white & third.is_above(second) & (third.close > first.close + penetration * first.body)),
        first.is_white
        & second.is_above(first)
        & (third.is_black & third.is_below(second) & (third.close < first.close - penetration * first.body)),
        first.is_long & second.is_doji & third.is_long,
    ),
    "cdltristar": lambda first, second, third: two_sided(
        second.gaps_below(first) & (third.bottom > second.bottom),
        second.gaps_above(first) & (third.top < second.top),
        first.is_doji & (second.body <= first.tiny) & (third.body <= first.tiny),
    ),
    "cdlunique3river": lambda first, second, third: bullish(
        first.is_long & first.is_black,
        second.is_black & (second.close > first.close) & (second.open <= first.open) & (second.low < first.low),
        third.is_short & third.is_white & (third.open > second.low),
    ),
    "cdl3starsinsouth": lambda first, second, third: bullish(
        first.is_black & first.is_long & (first.lower_shadow > first.body),
        second.is_black & (second.body < first.body) & (second.lower_shadow > second.tiny),
        (second.open > first.close) & (second.open <= first.high),
        (second.low < first.close) & (second.low >= first.low),
        third.is_black & third.is_short & third.lacks_shadows & third.is_inside(second),
    ),
    "cdl2crows": lambda first, second, third: bearish(
        first.is_white & first.is_long,
        second.is_black & second.gaps_above(first),
        third.is_black & third.opens_within(second) & third.closes_within(first),
    ),
    "cdlupsidegap2crows": lambda first, second, third: bearish(
        first.is_white & first.is_long,
        second.is_black & ~second.is_long & second.gaps_above(first),
        third.is_black & (third.open > second.open) & between(third.close, first.close, second.close),
    ),
    "cdlidentical3crows": lambda first, second, third: bearish(
        first.is_black & first.lacks_lower_shadow,
        second.is_black & second.lacks_lower_shadow & about(second.open, first.close, first.tolerance),
        third.is_black & third.lacks_lower_shadow & about(third.open, second.close, second.tolerance),
        (first.close > second.close) & (second.close > third.close),
    ),
    "cdl3whitesoldiers": lambda first, second, third: bullish(
        first.is_white & first.lacks_upper_shadow,
        second.is_white & second.lacks_upper_shadow & second.steps_up_from(first),
        third.is_white & third.lacks_upper_shadow & third.steps_up_from(second),
        (second.body > first.body - first.far) & (third.body > second.body - second.far) & third.is_long,
    ),
    "cdladvanceblock": lambda first, second, third: bearish(
        first.is_white & first.is_long & (first.upper_shadow < first.short_shadow),
        second.is_white & second.steps_up_from(first),
        third.is_white & third.steps_up_from(second),
        ((second.body < first.body - first.far) & (third.body < second.body + second.near))
        | (third.body < second.body - second.far)
        | (
            ((third.body < second.body) & (second.body < first.body))
            & ((third.upper_shadow > third.short_shadow) | (second.upper_shadow > second.short_shadow))
        )
        | ((third.body < second.body) & (third.upper_shadow > third.body)),
    ),
    "cdlstalledpattern": lambda first, second, third: bearish(
        first.is_white & first.is_long,
        second.is_white & second.is_long & second.lacks_upper_shadow & second.steps_up_from(first),
        third.is_white & third.is_short & (third.close > second.close),
        third.open >= second.close - third.body - second.near,
    ),
    # four and five candles
    "cdl3blackcrows": lambda first, second, third, fourth: bearish(
        first.is_white & (first.high > second.close),
        second.is_black & second.lacks_lower_shadow,
        third.is_black & third.lacks_lower_shadow & third.opens_within(second) & (third.close < second.close),
        fourth.is_black & fourth.lacks_lower_shadow & fourth.opens_within(third) & (fourth.close < third.close),
    ),
    "cdl3linestrike": lambda first, second, third, fourth: two_sided(
        third.is_white
        & ((second.close > first.close) & (third.close > second.close))
        & ((fourth.open > third.close) & (fourth.close < first.open)),
        third.is_black
        & ((second.close < first.close) & (third.close < second.close))
        & ((fourth.open < third.close) & (fourth.close > first.open)),
        first.like(second) & second.like(third) & ~third.like(fourth),
        second.opens_near(first) & third.opens_near(second),
    ),
    "cdlconcealbabyswall": lambda first, second, third, fourth: bullish(
        first.is_black & first.lacks_shadows,
        second.is_black & second.lacks_shadows,
        third.is_black & third.gaps_below(second) & (third.upper_shadow > third.tiny) & (third.high > second.close),
        fourth.is_black & (fourth.high > third.high) & (fourth.low < third.low),
    ),
    "cdlladderbottom": lambda first, second, third, fourth, fifth: bullish(
        first.is_black,
        second.is_black & (second.open < first.open) & (second.close < first.close),
        third.is_black & (third.open < second.open) & (third.close < second.close),
        fourth.is_black & (fourth.upper_shadow > fourth.tiny),
        fifth.is_white & (fifth.open > fourth.open) & (fifth.close > fourth.high),
    ),
    "cdlbreakaway": lambda first, second, third, fourth, fifth: two_sided(
        first.is_black
        & (second.gaps_below(first) & third.is_lower_than(second) & fourth.is_lower_than(third))
        & between(fifth.close, second.open, first.close),
        first.is_white
        & (second.gaps_above(first) & third.is_higher_than(second) & fourth.is_higher_than(third))
        & between(fifth.close, first.close, second.open),
        first.is_long & first.like(second) & second.like(fourth) & ~fourth.like(fifth),
    ),
    "cdlrisefall3methods": lambda first, second, third, fourth, fifth: by_color(
        first,
        first.is_long & fifth.is_long & first.like(fifth),
        second.is_short & second.reaches(first) & ~second.like(first),
        third.is_short & third.reaches(first) & third.like(second),
        fourth.is_short & fourth.reaches(first) & fourth.like(third),
        where(
            first.is_white,
            ((third.close < second.close) & (fourth.close < third.close))
            & ((fifth.open > fourth.close) & (fifth.close > first.close)),
            ((third.close > second.close) & (fourth.close > third.close))
            & ((fifth.open < fourth.close) & (fifth.close < first.close)),
        ),
    ),
    "cdlmathold": lambda first, second, third, fourth, fifth, penetration: bullish(
        first.is_white & first.is_long,
        second.is_black & second.is_short & second.gaps_above(first),
        third.is_short & (third.top < second.open),
        fourth.is_short & (fourth.top < third.top),
        between(third.bottom, first.close - penetration * first.body, first.close),
        between(fourth.bottom, first.close - penetration * first.body, first.close),
        fifth.is_white & (fifth.open > fourth.close),
        fifth.close > maximum(maximum(second.high, third.high), fourth.high),
    ),
    # a false break out of an inside candle
    "cdlhikkake": lambda first, second, third: with_confirmation(
        two_sided(third.is_lower_than(second), third.is_higher_than(second), second.is_inside(first)), third
    ),
    "cdlhikkakemod": lambda first, second, third, fourth: with_confirmation(
        two_sided(
            (second.close <= second.low + second.near) & fourth.is_lower_than(third),
            (second.close >= second.high - second.near) & fourth.is_higher_than(third),
            second.is_inside(first) & third.is_inside(second),
        ),
        fourth,
    ),
}
