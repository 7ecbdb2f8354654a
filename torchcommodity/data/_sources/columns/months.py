"""Names of months in the languages of Western European publishers, in full or shortened."""

import unicodedata
from functools import cache

MONTHS = (
    "january januar janvier enero gennaio janeiro januari",
    "february februar fevrier febrero febbraio fevereiro februari",
    "march marz maerz mrz mars marzo marco maart mrt",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro",
)


@cache
def month_number(name: str) -> int | None:
    """1 to 12 for the name of a month or its first letters, at least three; None for other words.

    >>> [month_number(name) for name in ("Jan", "Sept", "Mrz", "août", "jui", "June", "day")]
    [1, 9, 3, 8, None, 6, None]
    """
    letters = unicodedata.normalize("NFKD", name.lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    numbers = [n for n, names in enumerate(MONTHS, 1) if any(word.startswith(plain) for word in names.split())]
    return numbers[0] if len(numbers) == 1 and len(plain) >= 3 else None
