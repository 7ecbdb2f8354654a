"""Model card, and the document of a server without prices: workers import them without what makes forecasts."""

from dataclasses import asdict, replace
from typing import Any

from torchcommodity.data import CONTRACTS, horizon_name, utc_now
from torchcommodity.export import Metadata

FORMAT = "torchcommodity.dashboard.2"
USE = (
    "Quantiles of the future price at each horizon. Their width follows the volatility of the market. "
    "Intended for position sizing, price ranges, and checks of other forecasts."
)
LIMITATIONS = (
    "It says little about direction: only related prices, the season and contract rolls move the median from the last "
    "price, and related prices and season by at most half a standard deviation.",
    "It uses past prices and the roll rules of the exchanges only: no inventories, weather, news or positions.",
    "Past coverage does not guarantee future coverage.",
    "It is not investment advice.",
)
DOCS = (
    "docs/how-to/serving.md",
    "docs/concepts/forecaster.md",
    "docs/how-to/contracts.md",
    "docs/results/skill.md",
)
EMPTY = "The server was started without prices. Restart it with a source of prices, for example:"
EXAMPLES = (
    "torchcommodity serve MODEL --data prices.csv",
    "torchcommodity serve MODEL --data fred:DCOILWTICO",
    "torchcommodity serve MODEL --data embedded",
)


def model_card(metadata: Metadata) -> dict[str, Any]:
    """Metadata of the artifact, its intended use and its limitations."""
    contracts = [
        None if code is None else f"{CONTRACTS[code].name}, {CONTRACTS[code].exchange}" for code in metadata.contracts
    ]
    return {
        **asdict(replace(metadata, location=None)),  # coefficients that the page does not show
        "contract_names": contracts,
        "horizon_names": [horizon_name(rows, metadata.frequency) for rows in metadata.horizons],
        "use": USE,
        "limitations": LIMITATIONS,
        "docs": DOCS,
    }


def empty_document(metadata: Metadata) -> dict[str, Any]:
    """Document of a server without prices: the model card, and how to provide prices."""
    instructions = {"text": EMPTY, "examples": EXAMPLES}
    return {
        "format": FORMAT,
        "state": "empty",
        "created": utc_now(),
        "model": model_card(metadata),
        "instructions": instructions,
    }
