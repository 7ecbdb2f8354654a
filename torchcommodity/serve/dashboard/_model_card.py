"""What the page says of the model and of its prices, in words."""

from dataclasses import asdict
from typing import Any

from torchcommodity.data import CONTRACTS
from torchcommodity.export import Metadata
from torchcommodity.forecast import HORIZON_NAMES

STALE = 7  # days after which a last price is called old
USE = (
    "It says how far prices may move: quantiles of the price at each horizon, whose width follows the volatility of "
    "the market. It is meant for sizing risk, setting ranges and checking other views."
)
LIMITS = (
    "Direction is not forecast: the median stays near the last price.",
    "It knows past prices and the roll rules of the exchanges: no inventories, weather, news or positions.",
    "Bands held on past days are no promise for the next market.",
    "It is not investment advice.",
)
DOCS = (
    "docs/how-to/serving.md",
    "docs/concepts/forecaster.md",
    "docs/how-to/contracts.md",
    "docs/results/skill.md",
)
EMPTY = (
    "This server was started without prices, so there is nothing to forecast from. Start it with a source of prices, "
    "for example:"
)
EXAMPLES = (
    "torchcommodity serve ARTIFACT --data prices.csv",
    "torchcommodity serve ARTIFACT --data fred:DCOILWTICO",
    "torchcommodity serve ARTIFACT --data embedded",
)


def model_card(about: Metadata) -> dict[str, Any]:
    """Everything that the artifact says of itself, what it is for and what not."""
    names = [
        None if code is None else f"{CONTRACTS[code].name}, {CONTRACTS[code].exchange}" for code in about.contracts
    ]
    return {
        **asdict(about),
        "contract_names": names,
        "horizon_names": [HORIZON_NAMES.get(rows, f"{rows} rows") for rows in about.horizons],
        "use": USE,
        "limits": LIMITS,
        "docs": DOCS,
    }


def age(days: int) -> str:
    """An age in words.

    >>> age(0), age(1), age(40), age(400), age(2878)
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
