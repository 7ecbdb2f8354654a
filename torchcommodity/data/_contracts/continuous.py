"""A panel of front months from prices of single contracts: when it rolls, what it holds, its adjustment at rolls."""

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity._choices import Adjustment
from torchcommodity.data._contracts.contract_table import ContractTable
from torchcommodity.data._core.contracts import MONTHS, business_calendar, get_contract
from torchcommodity.data._core.errors import DataError, Finding, condense, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array, Dates, Months
from torchcommodity.data._quality.inspect import inspect

Trigger = Literal["expiry", "volume", "open-interest"]
EXPECTED = "expiry, 5d (days before expiry), volume, open-interest, months=HKNUZ, or several separated by commas"


@dataclass(frozen=True)
class RollRule:
    """When a series switches to the next contract. It never switches back.

    Args:
        when: "expiry": after the last trading day; "volume" or "open-interest": on the day after the next contract had
            more of it, at the latest at expiry.
        days: business days before the last trading day on which the contract is left at the latest.
        months: letters of the delivery months to hold, such as "HKNUZ"; default: those of the product.

    Raises:
        DataError: an unknown trigger, negative days, or a letter that is no delivery month.

    >>> RollRule.parse("volume,5d,months=HKNUZ")
    RollRule(when='volume', days=5, months='HKNUZ')
    """

    when: Trigger = "expiry"
    days: int = 0
    months: str = ""

    def __post_init__(self) -> None:
        known = self.when in get_args(Trigger) and self.days >= 0 and isinstance(self.days, int)
        if not known or set(self.months) - set(MONTHS):
            raise DataError(f"roll: expected {EXPECTED}; got {self}")

    @classmethod
    def parse(cls, text: "str | RollRule") -> "RollRule":
        """The rule of a text such as `5d` or `volume,months=HKNUZ`; a rule is returned unchanged."""
        if isinstance(text, RollRule):
            return text
        fields: dict[str, str | int] = {}
        value: str | int
        for word in text.split(","):
            word = word.strip()
            field, value = "when", word
            if re.fullmatch("[0-9]{1,3}d", word):
                field, value = "days", int(word[:-1])
            elif re.fullmatch(f"months=[{MONTHS}]+", word):
                field, value = "months", word.removeprefix("months=")
            elif word not in get_args(Trigger):
                raise DataError(f"roll: expected {EXPECTED}; got {text!r}")
            if field in fields:
                raise DataError(f"roll: expected {EXPECTED}; got {text!r}, with {field} twice")
            fields[field] = value
        return cls(**fields)  # type: ignore[arg-type]

    def delivery_months(self) -> tuple[int, ...]:
        """The chosen delivery months as numbers; empty where none are chosen."""
        return tuple(MONTHS.index(letter) + 1 for letter in self.months)

    def __str__(self) -> str:
        words = [self.when if self.when != "expiry" or not self.days else "", f"{self.days}d" if self.days else ""]
        return ",".join(filter(None, [*words, f"months={self.months}" if self.months else ""]))


class Quotes(NamedTuple):
    """Prices of the K contracts of one product on T days, contracts in the order of delivery."""

    dates: Dates  # (T,)
    deliveries: Months  # (K,)
    last_days: Dates  # (K,) the last days on which each contract may be held; NaT = not known
    prices: Array  # (T, K), NaN = missing
    activity: Array | None = None  # (T, K) volume or open interest, where the rule needs it; NaN = missing

    def listed(self) -> Array:
        """(T, K) bool: whether a contract had a price up to this row."""
        return np.logical_or.accumulate(~np.isnan(self.prices), axis=0)


def held_contracts(quotes: Quotes) -> Array:
    """The contract (T,) held on each row: the nearest of those listed so far that has not expired.

    A contract whose last day is not known is left on the first row without its price on which a later contract has one.
    With `activity`, the next contract is also entered on the row after it exceeds that of the contract held. No
    decision uses a later row, and the series never returns to an earlier contract.
    """
    has_price, listed = ~np.isnan(quotes.prices), quotes.listed()
    path = np.zeros(len(quotes.dates), dtype=np.int64)
    held = int(np.argmax(listed[0]))
    for t in range(len(path)):
        if t and quotes.activity is not None and _is_overtaken(quotes.activity[t - 1], listed[t - 1], held):
            held = _next(listed[t], held)
        while _has_expired(quotes, has_price, t, held) and listed[t, held + 1 :].any():
            held = _next(listed[t], held)
        path[t] = held
    return path


def curve(quotes: Quotes, held: Array, contracts: int) -> Array:
    """Prices (T, C) of the contracts from the one held on, in the order of delivery, among those listed so far."""
    later = quotes.listed() & (np.arange(len(quotes.deliveries)) >= held[:, None])
    place = later.cumsum(axis=1)
    nearby = np.full((len(held), contracts), np.nan)
    row, column = np.nonzero(later & (place <= contracts))
    nearby[row, place[row, column] - 1] = quotes.prices[row, column]
    return nearby


def last_holding_days(expiries: Dates, rule: RollRule, calendar: np.busdaycalendar, symbol: str) -> Dates:
    """The last days on which contracts with these last trading days may be held, `rule.days` business days before."""
    if not rule.days:
        return expiries
    if np.isnat(expiries).any():
        raise DataError(
            f"roll: expected known last trading days of {symbol!r} for {rule}; got contracts without one: name the "
            f"product (--contracts {symbol}=CL), add a column expiry, or roll by expiry, volume or open-interest"
        )
    days: Dates = np.busday_offset(expiries, -rule.days, roll="backward", busdaycal=calendar)
    return days


def _has_expired(quotes: Quotes, has_price: Array, t: int, held: int) -> bool:
    last = quotes.last_days[held]
    if not np.isnat(last):
        return bool(quotes.dates[t] > last)
    return bool(not has_price[t, held] and has_price[t, held + 1 :].any())


def _is_overtaken(activity: Array, listed: Array, held: int) -> bool:
    later = np.flatnonzero(listed[held + 1 :])
    if not later.size:
        return False
    now, following = np.nan_to_num(activity[[held, held + 1 + later[0]]])
    return bool(following > now)


def _next(listed: Array, held: int) -> int:
    return held + 1 + int(np.argmax(listed[held + 1 :]))


def adjust(quotes: Quotes, held: Array, adjustment: Adjustment) -> tuple[Array, list[int]]:
    """Back-adjusted prices (T,) of the contracts held (T,); the last contract is unchanged.

    "panama" adds the differences F_next - F_held of all later rolls, "ratio" multiplies by their ratios. Each is
    measured on the last row before the roll on which both contracts have a price (with "ratio", a positive one).

    Returns:
        The prices, NaN before a roll without such a row; and the rows of those rolls.
    """
    prices = quotes.prices[np.arange(len(held)), held]
    rolls = np.flatnonzero(np.diff(held)) + 1
    if adjustment == "none" or not rolls.size:
        return prices, []
    gaps = np.full(len(rolls), np.nan)
    for n, roll in enumerate(rolls):
        pair = quotes.prices[:roll, held[[roll - 1, roll]]]  # the contract left and the one entered
        usable = (pair > 0).all(axis=1) if adjustment == "ratio" else ~np.isnan(pair).any(axis=1)
        if usable.any():
            left, entered = pair[np.flatnonzero(usable)[-1]]
            gaps[n] = entered / left if adjustment == "ratio" else entered - left
    total = np.cumprod(gaps[::-1]) if adjustment == "ratio" else np.cumsum(gaps[::-1])
    identity = 1.0 if adjustment == "ratio" else 0.0
    after = np.append(total[::-1], identity)[np.searchsorted(rolls, np.arange(len(held)), side="right")]
    adjusted = prices * after if adjustment == "ratio" else prices + after
    return adjusted, [int(row) for row in rolls[np.isnan(gaps)]]


MAX_NEARBY = 12  # contracts of the curve


class Series(NamedTuple):
    """The front month of one symbol over its own days."""

    dates: Dates  # (T,)
    prices: Array  # (T,)
    deliveries: Months  # (T,)
    curve: Array  # (T, C)
    findings: list[Finding]


def continuous_panel(source: ContractTable, rule: RollRule, adjustment: Adjustment) -> Panel:
    """See `ContractPrices.continuous`."""
    if adjustment not in get_args(Adjustment):
        raise DataError(f"adjustment: expected {', '.join(get_args(Adjustment))}; got {adjustment!r}")
    parts = [_series(source, n, rule, adjustment) for n in range(len(source.symbols))]
    dates = np.unique(np.concatenate([part.dates for part in parts]))
    shape, contracts = (len(dates), len(parts)), max(part.curve.shape[1] for part in parts)
    values, nearby = np.full(shape, np.nan), np.full((*shape, contracts), np.nan)
    deliveries = np.full(shape, np.datetime64("NaT", "M"), dtype="datetime64[M]")
    for n, part in enumerate(parts):
        rows = np.searchsorted(dates, part.dates)
        values[rows, n], deliveries[rows, n] = part.prices, part.deliveries
        nearby[rows, n, : part.curve.shape[1]] = part.curve
    prices, curves = MetadataTensor(torch.from_numpy(values)), MetadataTensor(torch.from_numpy(nearby))
    panel = Panel(prices, dates, source.symbols, source.units, source.provenance)
    if adjustment == "none":  # an adjusted series has no rolls: its gaps are removed
        panel = replace(panel, contracts=source.products, curve=curves, deliveries=deliveries)
    findings = [*source.findings, *(finding for part in parts for finding in part.findings)]
    return replace(panel, findings=condense([*findings, *inspect(panel)]))


def _series(source: ContractTable, n: int, rule: RollRule, adjustment: Adjustment) -> Series:
    quotes, findings = _quotes(source, n, rule)
    held = held_contracts(quotes)
    prices, unknown = adjust(quotes, held, adjustment)
    findings += _roll_findings(source.symbols[n], quotes, held, rule)
    findings += [
        make_finding("unknown roll gap", source.symbols[n], quotes.dates[row], value="no earlier day with both prices")
        for row in unknown
    ]
    if adjustment != "none":
        rolls = int((np.diff(held) > 0).sum())
        findings.append(make_finding("adjusted", source.symbols[n], value=f"{adjustment} adjustment of {rolls} rolls"))
    nearby = curve(quotes, held, min(MAX_NEARBY, len(quotes.deliveries)))
    return Series(quotes.dates, prices, quotes.deliveries[held], nearby, findings)


def _quotes(source: ContractTable, n: int, rule: RollRule) -> tuple[Quotes, list[Finding]]:
    """The contracts that may be held, of the chosen delivery months or those of the product, as matrices (T, K)."""
    symbol, product = source.symbols[n], source.products[n]
    numbers, rows = source.select(symbol)
    months = rule.delivery_months() or (get_contract(product).delivery_months() if product else tuple(range(1, 13)))
    chosen = np.isin(source.deliveries[numbers].astype(np.int64) % 12 + 1, months)
    if not chosen.any():
        got = ", ".join(source.deliveries[numbers].astype(str)[:5])
        letters = "".join(MONTHS[month - 1] for month in months)
        raise DataError(
            f"roll: expected contracts of {symbol!r} for delivery in the months {letters}; got {got}; choose others "
            "with months= (--roll months=...)"
        )
    eligible, others, findings = numbers[chosen], source.deliveries[numbers[~chosen]], []
    if others.size:
        findings.append(make_finding("other delivery month", symbol, value=str(others[0]), count=len(others)))
    rows = rows[np.isin(source.contracts[rows], eligible)]
    dates, row = np.unique(source.dates[rows], return_inverse=True)
    column = np.searchsorted(eligible, source.contracts[rows])
    calendar = business_calendar("US" if product is None else get_contract(product).market)
    last_days = last_holding_days(source.expiries[eligible], rule, calendar, symbol)

    def matrix(cells: Array) -> Array:
        full = np.full((len(dates), len(eligible)), np.nan)
        full[row, column] = cells[rows]
        return full

    activity = {"volume": source.volume, "open-interest": source.open_interest}.get(rule.when)
    if rule.when != "expiry" and (activity is None or np.isnan(activity[rows]).all()):
        raise DataError(f"roll: expected a column of {rule.when} for {symbol!r}; got none; roll by expiry or 5d")
    quotes = Quotes(
        dates,
        source.deliveries[eligible],
        last_days,
        matrix(source.prices),
        None if activity is None else matrix(activity),
    )
    return quotes, findings


def _roll_findings(symbol: str, quotes: Quotes, held: Array, rule: RollRule) -> list[Finding]:
    """Contracts whose last trading day is not known, and contracts that were listed after a later one was held."""
    findings = []
    left = np.unique(held)[:-1]
    if (unknown := left[np.isnat(quotes.last_days[left])]).size and rule.when == "expiry":
        value = f"{quotes.deliveries[unknown[0]]}"
        findings.append(make_finding("unknown expiry", symbol, value=value, count=len(unknown)))
    first = np.argmax(quotes.listed(), axis=0)
    is_late = (held[first] > np.arange(len(first))) & ~(quotes.last_days < quotes.dates[first])
    if (late := np.flatnonzero(is_late)).size:
        day, value = quotes.dates[first[late[0]]], f"{quotes.deliveries[late[0]]} begins while a later one is held"
        findings.append(make_finding("late contract", symbol, day, value=value, count=len(late)))
    return findings
