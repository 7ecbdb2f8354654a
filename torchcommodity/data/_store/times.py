"""Times of vintages: `as_of` and `known_from`, in UTC."""

from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np

from torchcommodity.data._core.errors import DataError

AsOf = str | date | np.datetime64  # a datetime is a date


def parse_as_of(as_of: AsOf) -> datetime:
    """A date means its end, 23:59:59.999999 UTC; a time without a zone is UTC. The result has no zone.

    >>> parse_as_of("2026-03-31"), parse_as_of("2026-03-31T10:00+02:00")
    (datetime.datetime(2026, 3, 31, 23, 59, 59, 999999), datetime.datetime(2026, 3, 31, 8, 0))
    """
    value = _parse(as_of)
    return to_utc(value) if isinstance(value, datetime) else datetime.combine(value, time.max)


def to_utc(moment: datetime) -> datetime:
    """The time in UTC, without a zone, which is how the store holds it."""
    return moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)


def later_time(known_from: datetime | None, last: datetime | None) -> datetime:
    """The time of a new vintage: `known_from`, or now; always later than the last one, even if the clock was set back.

    Raises:
        DataError: `known_from` is not later than the last vintage, or is in the future.
    """
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    earliest = datetime.min if last is None else last + timedelta(microseconds=1)
    if known_from is None:
        return max(now, earliest)
    if not earliest <= to_utc(known_from) <= now:
        bounds = f"after {format_time(last)} and not in the future" if last else "not in the future"
        raise DataError(f"known_from: expected a time {bounds}; got {known_from}; add vintages in the order of time")
    return to_utc(known_from)


def format_time(moment: datetime) -> str:
    """ISO 8601 in UTC, to the microsecond.

    >>> format_time(datetime(2026, 3, 31))
    '2026-03-31T00:00:00.000000Z'
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse(as_of: Any) -> date:
    if isinstance(as_of, np.datetime64):  # an object of datetime, unless its unit is finer than microseconds
        unit = "D" if np.datetime_data(as_of)[0] in "YMWD" else "us"
        as_of = as_of.astype(f"datetime64[{unit}]").astype(object)
    if isinstance(as_of, date):
        return as_of
    try:
        text = str(as_of)
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise DataError(f"as_of: expected a date YYYY-MM-DD, or a time YYYY-MM-DDTHH:MM; got {as_of!r}") from None
