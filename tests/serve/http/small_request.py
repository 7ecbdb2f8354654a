"""Metadata of a small artifact, and the rows of a valid request to it."""

from torchcommodity.export import Metadata

METADATA = Metadata(
    format="pt2",
    symbols=("WTI", "BRENT"),
    units=("$/bbl", ""),
    contracts=(None, None),
    horizons=(5, 21),
    levels=(0.1, 0.5, 0.9),
    warmup=2,
    calendar=("1970-01-01", "2060-12-31"),
    provenance=(),
    trained_through="2018-12-31",
    model="har-garch",
    note="",
    version="0",
    torch="2",
)
DATES = ["2018-12-27", "2018-12-28", "2018-12-31"]
PRICES = [[44.6, 51.49], [45.1, 50.57], [None, 53.8]]
