"""Random candles on a coarse grid, on which prices tie, for tests of candlestick patterns."""

import numpy as np
import numpy.typing as npt

Candles = npt.NDArray[np.float64]

# open, high, low, close of the patterns that chance hardly makes, for a mean body of 2
RARE = (
    ((30, 35, 29, 34), (39, 40, 35, 36), (38, 39, 31, 32)),  # two crows
    ((30, 35, 29, 34), (37, 38, 35, 36), (38, 39, 34, 35)),  # upside gap two crows
    ((36, 37, 25, 31), (34, 35, 27, 31), (31, 31, 29, 29)),  # three stars in the south
    ((30, 33, 29, 32), (31, 32, 28, 28), (30, 30, 26, 26), (28, 28, 24, 24)),  # three black crows
    ((36, 36, 33, 33), (33, 33, 30, 30), (28, 31, 26, 27), (33, 33, 25, 25)),  # concealing baby swallow
    ((36, 37, 31, 32), (30, 31, 28, 29), (29, 30, 27, 28), (28, 29, 26, 27), (27, 32, 26, 31)),  # breakaway
    ((30, 36, 29, 35), (34, 35, 32, 33), (33, 34, 31, 32), (32, 33, 30, 31), (32, 38, 31, 37)),  # three methods
    ((30, 36, 29, 35), (37, 38, 35, 36), (36, 37, 33, 34), (35, 36, 33, 34), (35, 40, 34, 39)),  # mat hold
    ((30, 33, 29, 32), (34, 37, 33, 36), (35, 36, 32, 33)),  # tasuki gap
    ((30, 33, 29, 32), (31, 35, 30, 34), (33, 37, 32, 36), (37, 38, 28, 29)),  # three-line strike
    ((32, 33, 27, 28), (25, 26, 24, 25), (28, 33, 27, 32)),  # abandoned baby
    ((32, 32, 27, 27), (34, 39, 34, 39)),  # kicking
)


def random_candles(rows: int, assets: int, generator: np.random.Generator) -> Candles:
    """Open, high, low, close, (4, T, N) multiples of 0.25, on which every pattern of TA-Lib occurs."""
    candles = _chance_candles(rows, assets, generator)
    for n in range(assets):
        for t in range(10, rows - 5, 20):
            shape = _variation(RARE[generator.integers(len(RARE))], generator)
            candles[:, t : t + shape.shape[1], n] = shape + candles[3, t - 1, n]
    return candles / 4


def _chance_candles(rows: int, assets: int, generator: np.random.Generator) -> Candles:
    """Each opens at a level of the candle before it, and has a body and shadows that are none, short or long."""

    def choose(*values: Candles | int) -> Candles:
        table = np.stack([np.broadcast_to(value, (assets,)) for value in values])
        return table[generator.integers(len(values), size=assets), np.arange(assets)]

    def size(low: int, high: int) -> Candles:
        return generator.integers(low, high, assets).astype(float)

    candles = np.full((4, rows + 1, assets), 400.0)
    for t in range(rows):
        open, high, low, close = candles[:, t]
        top, bottom, up = np.maximum(open, close), np.minimum(open, close), generator.random(assets) < 0.5
        gap = np.where(up, choose(top, high) + size(1, 4), choose(bottom, low) - size(1, 4))
        opens = choose(
            close, open, close + size(-1, 2), gap, np.floor(bottom + (top - bottom) * generator.random(assets))
        )
        opens = np.where(abs(opens - 400) > 200, 400, opens)
        color = choose(np.where(close >= open, 1, -1), np.where(close >= open, 1, -1), 1, -1)
        closes = opens + color * choose(0, size(1, 4), size(4, 9), size(9, 17), abs(opens - open), abs(opens - close))
        highs = np.maximum(opens, closes) + choose(0, 0, size(1, 3), size(1, 12))
        lows = np.minimum(opens, closes) - choose(0, 0, size(1, 3), size(1, 12))
        candles[:, t + 1] = opens, highs, lows, closes
    return candles[:, 1:]


def _variation(shape: tuple[tuple[int, ...], ...], generator: np.random.Generator) -> Candles:
    """A shape around its first open, scaled, upside down or not, with a change of one price or none."""
    open, high, low, close = (np.array(shape, float).T - shape[0][0]) * generator.integers(2, 5)
    if generator.random() < 0.5:
        open, high, low, close = -open, -low, -high, -close
    changed = (open, close, high, low)[generator.integers(4)]
    changed[generator.integers(len(shape))] += generator.integers(-1, 2)
    return np.stack([open, np.maximum.reduce([open, high, close]), np.minimum.reduce([open, low, close]), close])
