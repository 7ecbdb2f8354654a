"""First screen: one row per commodity with last price, ranges ahead, changes, coverage and next roll."""

import math
from datetime import date

from torchcommodity.charts import format_age
from torchcommodity.forecast import Outlook, OutlookRange, OutlookRow
from torchcommodity.report._markup import Markup, element, join, paragraph, section
from torchcommodity.report._tables import format_change, format_number, table

MAX_NAMES = 3  # old prices named one by one


def outlook_section(outlook: Outlook) -> Markup:
    """The table, and how to read it."""
    has_rolls = any(row.contract_month or row.next_roll for row in outlook.rows)
    # target date of each horizon where all rows have the same dates, else "" for each
    targets = {tuple(_target(item, outlook.today) for item in row.ranges) for row in outlook.rows}
    dates = list(targets.pop()) if len(targets) == 1 else [""] * len(outlook.rows[0].ranges)
    horizons = [join([item.name, " ", _small(day)]) for item, day in zip(outlook.rows[0].ranges, dates)]
    columns = ["Commodity", "Last price", *horizons, *(["Contract, next roll"] if has_rolls else [])]
    rows = []
    for n, row in enumerate(outlook.rows):
        code = f"{row.contract}, {row.exchange}" if row.contract else ""
        details = ", ".join(text for text in (row.symbol if row.name != row.symbol else "", code) if text)
        days = row.age_trading_days
        trading = f", {days} trading day{'s' * (days != 1)}" if 0 < row.age_days <= 31 else ""
        age = "today" if row.age_days <= 0 else f"{format_age(row.age_days)} old{trading}"
        price = element("strong", format_number(row.last_price, row.quoted_decimals))
        cells = [
            join([element("a", row.name, href=f"#forecast-{n}"), _small(details)]),
            join([price, f" {row.unit}", _small(row.last_date), _small(age)]),
        ]
        for item, day in zip(row.ranges, dates):
            cells.append(_range_cell(row, item, "" if day else _target(item, outlook.today)))
        rows.append([*cells, _contract_cell(row, outlook.today)] if has_rolls else cells)
    subject = f"{outlook.interval_name} range of the price" if outlook.interval else "Price"
    caption = f"{subject} at each horizon, one row per commodity"
    return section(
        "outlook",
        f"{outlook.interval_name} range of prices ahead" if outlook.interval else "Prices ahead",
        table(caption, columns, rows, text_columns=range(len(columns)), stack="outlook"),
        paragraph(_reading(outlook), class_="lead"),
    )


def stale_note(outlook: Outlook) -> str:
    """First line of a report made from old prices; "" where they are recent."""
    rows = outlook.stale
    if not rows:
        return ""
    names = ", ".join(row.name for row in rows) if len(rows) <= MAX_NAMES else f"{len(rows)} commodities"
    names = "every commodity" if len(rows) == len(outlook.rows) > 1 else names
    oldest = max(rows, key=lambda row: row.age_days)
    limit = "up to " if any(row.last_date != oldest.last_date for row in rows) else ""
    age = f"{limit}{format_age(oldest.age_days)} old ({oldest.last_date})"
    return f"Old prices: the last price of {names} is {age}. The ranges start there, not today."


def _reading(outlook: Outlook) -> str:
    """How to read a cell of the table."""
    text = f"In {outlook.interval_name} of cases the price is expected inside the range." if outlook.interval else ""
    ranges, any_signed = [item for row in outlook.rows for item in row.ranges], any(row.signed for row in outlook.rows)
    if any(item.median_change is not None for item in ranges):
        days = {row.previous_date for row in outlook.rows}
        previous = f"the forecast of {max(map(str, days))}" if len(days) == 1 else "the forecast one row earlier"
        text += f" Signed percentages: change of the median and of the range's width since {previous}"
        text += "; of a price that may be negative, the median's is in its unit." if any_signed else "."
    if any(item.coverage for item in ranges):
        text += f" Inside: share of past outcomes in their range, target: {outlook.interval_name}; "
        text += "n: number of independent forecasts."
    return text


def _range_cell(row: OutlookRow, item: OutlookRange, target: str) -> Markup:
    low, median, high = (format_number(price, row.decimals) for price in (item.low, item.median, item.high))
    bounds = [] if math.isnan(item.low) else [element("strong", f"{low} to {high}", class_="range")]
    lines = [*bounds, _small(target)]
    if math.isnan(item.median):  # neither it nor, mostly, the bounds are among the levels
        lines.append(_small("quantiles below"))
    elif item.median_change is None or item.width_change is None:
        lines.append(_small(f"median {median}"))
    elif row.previous_date == row.last_date:
        lines.append(_small(f"median {median}, no new price"))
    else:
        change = format_number(item.median_change, row.decimals)
        words = f"{'+' * (item.median_change >= 0)}{change}" if row.signed else format_change(item.median_change)
        lines.append(_small(f"median {median}, {words}"))
        if not math.isnan(item.width_change):
            lines.append(_small(f"width {format_change(item.width_change)}"))
    if item.coverage:
        lines.append(_small(f"inside {100 * item.coverage.share:.0f} %, n = {item.coverage.independent:,}"))
    return join(lines)


def _contract_cell(row: OutlookRow, today: str) -> Markup:
    if row.contract_month is None:
        return Markup("no roll calendar" if row.contract else "spot price")
    month = date.fromisoformat(f"{row.contract_month}-01").strftime("%b %Y")
    if row.next_roll is None:
        return element("strong", month)
    roll = "rolled" if row.next_roll <= today else "next roll"  # of old prices, the contract may be another by now
    return join([element("strong", month), _small(f"{roll} {row.next_roll}")])


def _target(item: OutlookRange, today: str) -> str:
    return f"{item.date}{' (passed)' * (item.date <= today)}"


def _small(text: str) -> Markup:
    return element("span", text, class_="small") if text else Markup("")
