"""The code of docs/prices.md and docs/contracts.md runs and prints what the pages show."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data

DOCS = Path(__file__).parents[2] / "docs"


def run(page: str) -> tuple[dict[str, object], str]:
    """Names and output of the Python blocks of a page, one after another."""
    names: dict[str, object] = {}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S):
            exec(compile(block, page, "exec"), names)
    return names, output.getvalue()


def test_prices_page_code_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, output = run("prices.md")
    assert f"```text\n{output}```" in (DOCS / "prices.md").read_text()


def test_prices_page_lists_every_finding() -> None:
    page = (DOCS / "prices.md").read_text()
    listed = re.findall(r"^\| ([a-z, ]+) \|", page[page.index("| finding |") :], flags=re.M)
    assert {kind for row in listed for kind in row.split(", ")} >= data.TREATMENTS.keys()


def test_contracts_page_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dates = pd.bdate_range("2019-01-02", periods=100, name="date")
    closes = {"WTI": np.linspace(50.0, 60.0, 100), "CORN": np.linspace(380.0, 360.0, 100)}
    pd.DataFrame(closes, index=dates).to_csv("prices.csv")
    nearby = {(symbol, nth): prices * 1.01 ** (nth - 1) for symbol, prices in closes.items() for nth in (1, 2)}
    curve = pd.DataFrame(nearby, index=dates).rename_axis(columns=["symbol", "nth"])
    curve.stack(["symbol", "nth"]).rename("close").reset_index().to_csv("curve.csv", index=False)
    names, _ = run("contracts.md")
    assert names["rolls"].shape == (226, 2)  # type: ignore[attr-defined]
    assert names["returns"].isfinite()[1:].all()  # type: ignore[attr-defined]
    assert (names["gaps"] > 0).any(0).all()  # type: ignore[operator]
