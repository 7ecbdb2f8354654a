"""Bars of a panel: which sources have them, and what is wrong with a range."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from torchcommodity import data
from torchcommodity.data import DataError

BARS = """Date,Open,High,Low,Close,Adj Close,Volume
2024-01-02,71.7,73.6,70.1,70.38,70.38,293361
2024-01-03,70.4,73.2,69.3,72.70,72.70,351912
2024-01-04,73.0,74.0,71.9,72.19,72.19,312004
2024-01-05,72.2,72.2,72.2,73.81,73.81,289102
2024-01-08,73.6,73.9,0.0,70.77,70.77,351001
"""


def bars_file(folder: Path, text: str = BARS) -> Path:
    path = folder / "CL=F.csv"
    path.write_text(text)
    return path


def test_read_keeps_open_high_and_low(tmp_path: Path) -> None:
    panel = data.read(bars_file(tmp_path))
    assert panel.bars is not None
    assert panel.bars.shape == (5, 1, 3)
    assert panel.bars[0, 0].tolist() == [71.7, 73.6, 70.1]
    rows = [line.split(",") for line in BARS.splitlines()]
    without = data.read(bars_file(tmp_path, "\n".join(f"{row[0]},{row[4]}" for row in rows)))
    assert without.bars is None
    assert torch.equal(panel.values.plain(), without.values.plain())
    assert (panel.symbols, panel.dates.tolist()) == (without.symbols, without.dates.tolist())


def test_read_counts_bad_ranges(tmp_path: Path) -> None:
    findings = {f.kind: f for f in data.read(bars_file(tmp_path)).findings}
    assert str(findings["bad range"]) == (
        "bad range CL=F 2024-01-05: open 72.2, high 72.2, low 72.2; the high must be above the low, 2 times "
        "(the row counts with its close)"
    )
    assert "few ranges" not in findings
    assert findings["ignored column"].value == "Adj Close, Volume"


def test_read_reports_a_symbol_with_few_usable_ranges(tmp_path: Path) -> None:
    text = BARS.replace("74.0", "71.9").replace("73.2", "69.3")
    findings = {f.kind: f for f in data.read(bars_file(tmp_path, text)).findings}
    assert str(findings["few ranges"]) == "few ranges CL=F: 1 of 5 rows with a usable range (closes alone are used)"


def test_read_reports_bars_that_cannot_be_read_and_keeps_the_closes(tmp_path: Path) -> None:
    panel = data.read(bars_file(tmp_path, BARS.replace("71.7,73.6", "71.7,high?")))
    assert panel.bars is None
    assert panel.values.shape == (5, 1)
    (finding,) = [f for f in panel.findings if f.kind == "unreadable bars"]
    assert "line 2" in finding.value
    assert "high?" in finding.value


def test_read_keeps_bars_that_only_the_numbers_tell(shared_data: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(shared_data / "bars.csv.gz")
    rows = rows[rows.symbol == "NATGAS"].tail(300)
    fields = {"open": "eroeffnung", "high": "oben", "low": "unten", "close": "ende"}
    named, other = tmp_path / "NATGAS.csv", tmp_path / "unnamed" / "NATGAS.csv"
    other.parent.mkdir()
    rows[["date", *fields]].to_csv(named, index=False)
    rows[["date", *fields]].rename(columns=fields).to_csv(other, index=False)
    expected, panel = data.read(named), data.read(other)
    assert expected.bars is not None
    assert panel.bars is not None
    assert torch.equal(panel.bars, expected.bars)
    assert [f.kind for f in panel.findings if f.kind == "ignored column"] == []


def test_read_has_no_bars_of_an_adjusted_close(tmp_path: Path) -> None:
    panel = data.read(bars_file(tmp_path), column="Adj Close")
    assert panel.bars is None
    (finding,) = [f for f in panel.findings if f.kind == "ignored column"]
    assert finding.value == "Open, High, Low, Close, Volume"


def test_frames_have_bars_as_files(tmp_path: Path) -> None:
    frame = pd.read_csv(bars_file(tmp_path), parse_dates=["Date"])
    expected = data.read(bars_file(tmp_path)).bars
    assert expected is not None
    wide = pd.concat({"CL=F": frame.set_index("Date"), "HO=F": 2 * frame.set_index("Date")}, axis=1).swaplevel(axis=1)
    long = pd.concat([frame.assign(symbol="CL=F"), (2 * frame.set_index("Date")).reset_index().assign(symbol="HO=F")])
    for panel in (data.to_panel(wide), data.to_panel(long), data.to_panel(data.read_bars(wide))):
        assert panel.symbols == ("CL=F", "HO=F")
        assert panel.bars is not None
        assert torch.equal(panel.bars[:, 0], expected[:, 0])
        assert torch.equal(panel.bars[:, 1], 2 * expected[:, 0])
        assert [f.symbol for f in panel.findings if f.kind == "bad range"] == ["CL=F", "HO=F"]


def test_panel_selects_bars_with_its_rows_and_symbols(tmp_path: Path) -> None:
    panel = data.read(bars_file(tmp_path))
    part = panel.between("2024-01-03", "2024-01-05")
    assert part.bars is not None
    assert part.bars[:, 0, 1].tolist() == [73.2, 74.0, 72.2]
    other = data.to_panel(data.read_bars(bars_file(tmp_path)))
    assert panel["CL=F"].equals(panel)
    assert other.bars is not None
    changed = data.Panel(
        panel.values, panel.dates, panel.symbols, panel.units, panel.provenance, bars=type(panel.values)(2 * other.bars)
    )
    assert not changed.equals(panel)


def test_panel_states_what_its_bars_must_be(tmp_path: Path) -> None:
    panel = data.read(bars_file(tmp_path))
    arguments = (panel.values, panel.dates, panel.symbols, panel.units, panel.provenance)
    assert panel.bars is not None
    with pytest.raises(DataError, match=r"panel: expected bars of shape \(T, N, 3\) = \(5, 1, 3\).*; got \(5, 1, 2\)"):
        data.Panel(*arguments, bars=type(panel.values)(panel.bars[..., :2]))
    infinite = panel.bars.plain().clone()
    infinite[1, 0, 2] = torch.inf
    with pytest.raises(DataError, match=r"got inf as low of 'CL=F' on 2024-01-03"):
        data.Panel(*arguments, bars=type(panel.values)(infinite))
