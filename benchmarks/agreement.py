"""Agreement of `ops.indicators` with TA-Lib: every function of TA-Lib, with its default settings, on two stock indices.

python benchmarks/agreement.py                                 # to standard output, in seconds
python benchmarks/agreement.py --page docs/results/talib.md
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import talib
import torch
from arch.data import nasdaq, sp500
from markdown import EXTREMES, Rows, environment, format_table, replace_table, sort_by, write_csv
from row import columns
from talib import abstract
from talib_calls import outputs, select_inputs
from torch import Tensor

from torchcommodity.ops import indicators

INDEXES = ("maxindex", "minindex", "minmaxindex")  # TA-Lib returns any of several equal prices: the prices are compared
UNIT_INTERVAL = ("acos", "asin")  # prices are divided by their maximum
HEADS = ("function", "group", "warm-up rows", "values compared", "largest difference")


@dataclass(frozen=True)
class Agreement:
    """Of one function; `difference` is the largest one, relative to the largest value of the output."""

    group: str
    warm_up: int
    values: int
    difference: float


def prices() -> dict[str, Tensor]:
    """Panels (T, 2), float64, by TA-Lib's names of the inputs."""
    frames = [market.load()[-5000:] for market in (nasdaq, sp500)]
    names = ("Open", "High", "Low", "Close", "Volume")
    panels = {name.lower(): torch.tensor(np.stack([frame[name] for frame in frames], 1)).double() for name in names}
    return panels | {"periods": 2 + torch.arange(5000).remainder(29).double().unsqueeze(-1).expand(5000, 2)}


def agreement(name: str, group: str, panels: dict[str, Tensor]) -> Agreement:
    """Compare all rows after the warm-up; a row that only one of the two has counts as an infinite difference."""
    function, peer = getattr(indicators, name), getattr(talib, name.upper())
    inputs = select_inputs(name, panels)
    if name in UNIT_INTERVAL:
        inputs = [x / x.amax() for x in inputs]
    warm_up = indicators.lookback(name)
    if warm_up != abstract.Function(name).lookback:
        return Agreement(group, warm_up, 0, np.inf)
    peers = [outputs(peer(*series)) for series in zip(*map(columns, inputs))]
    pairs = [
        (y[warm_up:, n].double().numpy(), x[warm_up:].astype(float))
        for n, expected in enumerate(peers)
        for y, x in zip(outputs(function(*inputs)), expected, strict=True)
    ]
    if name in INDEXES:
        series = np.repeat(inputs[0].numpy().T, len(peers[0]), axis=0)
        pairs = [(close[y.astype(int)], close[x.astype(int)]) for close, (y, x) in zip(series, pairs, strict=True)]
    return Agreement(group, warm_up, sum(x.size for _, x in pairs), max(_difference(*pair) for pair in pairs))


def _difference(y: np.ndarray, x: np.ndarray) -> float:
    if not np.array_equal(np.isnan(y), np.isnan(x)):
        return np.inf
    scale = np.nanmax(np.abs(x), initial=0)
    return float(np.nanmax(np.abs(y - x), initial=0) / (scale or 1))


def agreements() -> Iterator[tuple[str, Agreement]]:
    panels = prices()
    for group, names in talib.get_function_groups().items():
        for name in sorted(map(str.lower, names)):
            yield name, agreement(name, group, panels)


def summary(rows: dict[str, Agreement]) -> str:
    """Functions by group: how many are equal to the last bit, and the largest difference of the others."""
    groups = {"all": list(rows.values())}
    for row in rows.values():
        groups.setdefault(row.group, []).append(row)
    cells = [
        [
            group,
            str(len(members)),
            str(sum(row.difference == 0 for row in members)),
            f"{max(row.difference for row in members):.1g}",
        ]
        for group, members in groups.items()
    ]
    return format_table(["group", "functions", "equal to the last bit", "largest difference"], cells)


def cells(name: str, row: Agreement) -> list[str]:
    return [f"`{name}`", row.group, str(row.warm_up), f"{row.values:,}", f"{row.difference:.1g}"]


def write_page(page: Path, rows: Rows, note: str) -> None:
    """Replace the table of the largest differences, and write the file of all rows beside the page."""
    file = page.with_suffix(".csv")
    write_csv(file, [head.replace(" ", "_").replace("-", "") for head in HEADS], rows)
    text = f"[All {len(rows)} functions]({file.name}), as CSV. The {EXTREMES} largest differences:"
    largest = sort_by(rows, HEADS.index("largest difference"))[: -EXTREMES - 1 : -1]
    replace_table(page, "agreement", f"{text}\n\n{format_table(HEADS, largest)}\n\n{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Markdown page whose tables `summary` and `agreement` are replaced")
    page = parser.parse_args().page
    agreement_of = dict(agreements())
    rows = [cells(name, row) for name, row in agreement_of.items()]
    note = environment(f"torch {torch.__version__}, TA-Lib {talib.__version__}")
    if page:
        replace_table(page, "summary", summary(agreement_of))
        write_page(page, rows, note)
    else:
        print(summary(agreement_of), format_table(HEADS, rows), note, sep="\n\n")


if __name__ == "__main__":
    main()
