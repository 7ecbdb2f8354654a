"""The symbol of a file that holds one series and does not name it: from the name of the file."""

import re

GENERIC = re.compile(
    "prices?|data|dataset|table|export|download|file|histor(y|ical)|test|bars|ohlcv?|close|series|output|input|sample|"
    "untitled|new|daily|weekly|monthly|eod|quotes|book|sheet|csv|xlsx|parquet|te?mp|"
)
_ENDING = re.compile(r"\.(csv|txt|tsv|dat|parquet|pq|feather|arrow|xlsx?|gz|zst|bz2|xz|zip)$", re.IGNORECASE)


def symbol_of_file(path: str, pattern: str = "") -> str:
    """The symbol in a file name, or "" where the name says nothing (`data.csv`).

    Args:
        path: the file; folders and endings do not count.
        pattern: of the vendor's file names; group 1 is the symbol.

    >>> symbol_of_file("in/CL=F.csv.gz"), symbol_of_file("prices.csv"), symbol_of_file("cl.f_d.csv", r"(.+)_d")
    ('CL=F', '', 'cl.f')
    """
    stem = re.split(r"[/\\]", path)[-1].strip()
    while (shorter := _ENDING.sub("", stem)) != stem:
        stem = shorter
    if pattern and (match := re.fullmatch(pattern, stem)):
        stem = match[1]
    is_generic = GENERIC.fullmatch(re.sub(r"[\W_\d]+", "", stem.lower()))
    return "" if is_generic or not stem.isprintable() else stem.strip()
