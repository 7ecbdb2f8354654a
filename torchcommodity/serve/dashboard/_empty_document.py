"""Dashboard document of a server without prices, in a module that workers import without those that make forecasts."""

from typing import Any

from torchcommodity.data import utc_now
from torchcommodity.export import Metadata
from torchcommodity.serve.dashboard._model_card import EMPTY, EXAMPLES, model_card

FORMAT = "torchcommodity.dashboard.2"


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
