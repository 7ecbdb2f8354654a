"""Prices and their age in words: how many decimals are worth showing, how old a price is."""

import numpy as np

MAX_DECIMALS = 4
TOLERANCE = 1e-6  # relative: prices that were stored in single precision
SAMPLE = 0.95  # share of the prices that a number of decimals must represent


def quoted_decimals(prices: np.ndarray) -> int:
    """Decimals in which prices are quoted, at most 4; missing prices are ignored, and without any it is 4.

    >>> quoted_decimals(np.array([71.23, 70.9, np.nan])), quoted_decimals(np.array([2.614, 2.557]))
    (2, 3)
    """
    finite = prices[np.isfinite(prices)]
    if not finite.size:  # nothing to see: as many as a forecast may have
        return MAX_DECIMALS
    for decimals in range(MAX_DECIMALS):
        exact = np.abs(finite - finite.round(decimals)) <= TOLERANCE * np.abs(finite)
        if exact.sum() >= SAMPLE * finite.size:
            return decimals
    return MAX_DECIMALS


def forecast_decimals(price: float, quoted: int = MAX_DECIMALS) -> int:
    """Decimals of a forecast of this size: about three significant digits, never more than the price is quoted in.

    >>> [forecast_decimals(price) for price in (2650.0, 471.25, 71.23, 3.456, 0.8712)]
    [0, 1, 1, 3, 4]
    >>> forecast_decimals(2.82, quoted=2)
    2
    """
    size = abs(price)
    by_size = 0 if size >= 1000 else 1 if size >= 10 else 3 if size >= 1 else MAX_DECIMALS
    return min(by_size, quoted)


def format_age(days: int) -> str:
    """Age in words.

    >>> format_age(0), format_age(1), format_age(40), format_age(400), format_age(2878)
    ('today', '1 day', '40 days', '13 months', '7 years and 10 months')
    """
    if days <= 0:
        return "today"
    if days < 61:
        return f"{days} day{'s' * (days > 1)}"
    months = int(days / 30.44)
    if months < 24:
        return f"{months} months"
    years, months = divmod(months, 12)
    return f"{years} years" + (f" and {months} month{'s' * (months > 1)}" if months else "")
