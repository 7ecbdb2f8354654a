"""When a front-month series switches to its next contract, as a value and as the text of a command."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from torchcommodity.data._core.contracts import MONTHS
from torchcommodity.data._core.errors import DataError

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
        for word in text.split(","):
            field, value = _parse_word(word.strip(), text)
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


def _parse_word(word: str, text: str) -> tuple[str, str | int]:
    if word in get_args(Trigger):
        return "when", word
    if re.fullmatch("[0-9]{1,3}d", word):
        return "days", int(word[:-1])
    if re.fullmatch(f"months=[{MONTHS}]+", word):
        return "months", word.removeprefix("months=")
    raise DataError(f"roll: expected {EXPECTED}; got {text!r}")
