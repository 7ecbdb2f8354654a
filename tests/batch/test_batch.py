"""A table of panels and an artifact: every panel answered once, in its own bits, and the results whole or not there."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcommodity import batch as module
from torchcommodity import data, forecast
from torchcommodity.batch import Summary, batch, holds_panels
from torchcommodity.batch._answers import groups
from torchcommodity.batch._requests import by_panel
from torchcommodity.export import Artifact, export
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

SMALL = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)
PRICES = data.embedded()["WTI", "SP500"].between("2010-01-01", "2016-12-31")
ROWS = 2 * 3 * 2  # of forecasts a panel: horizons, levels, symbols


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return forecast.fit(PRICES, FitConfig(HarGarchConfig(SMALL)))


@pytest.fixture(scope="module")
def file(forecaster: Forecaster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(forecaster, tmp_path_factory.mktemp("artifact") / "small.pt2")


@pytest.fixture(scope="module")
def artifact(file: Path) -> Artifact:
    return Artifact.load(file)


def windows(count: int = 6, rows: int = 60) -> pd.DataFrame:
    """Windows of real prices of unequal lengths as a long table."""
    frames = []
    for k in range(count):
        frame = PRICES.to_pandas().iloc[7 * k : 7 * k + rows + k % 3]
        long = frame.reset_index().melt("date", var_name="symbol", value_name="price")
        frames.append(long.assign(panel=f"p{k}"))
    return pd.concat(frames, ignore_index=True)


def written(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path, index=False)
    return path


def read(out: Path, table: str = "forecasts") -> pd.DataFrame:
    with duckdb.connect(str(out), read_only=True) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchdf()


def refusals(out: Path) -> dict[Any, str]:
    with duckdb.connect(str(out), read_only=True) as connection:
        return dict(connection.execute("SELECT panel, reason FROM refused").fetchall())


def test_every_panel_has_the_bits_of_predict(artifact: Artifact, forecaster: Forecaster, tmp_path: Path) -> None:
    table = windows(7).sample(frac=1, random_state=0)
    found = batch(artifact, written(table, tmp_path / "p.parquet"), tmp_path / "f.duckdb")
    assert (found.run.panels, found.run.answered, found.run.forecasts) == (7, 7, 7 * ROWS)
    forecasts = read(tmp_path / "f.duckdb")
    for k in range(7):
        dates = PRICES.dates[7 * k : 7 * k + 60 + k % 3]
        expected = forecast.predict(forecaster, PRICES.between(dates[0], dates[-1]))
        mine = forecasts[forecasts["panel"] == f"p{k}"].merge(
            expected.to_pandas().drop(columns="date").rename(columns={"origin": "date"}),
            on=["date", "symbol", "horizon", "level"],
            suffixes=("", "_alone"),
        )
        assert len(mine) == ROWS
        assert (mine["log_return"] == mine["log_return_alone"]).all()
        assert (mine["price"] == mine["price_alone"]).all()
        assert set(mine["last"]) == set(expected.last.tolist())


def test_asked_again_it_changes_nothing(artifact: Artifact, tmp_path: Path) -> None:
    path, out = written(windows(), tmp_path / "p.parquet"), tmp_path / "new" / "f.duckdb"
    first = batch(artifact, path, out)
    before = out.read_bytes()
    assert batch(artifact, path, out) == Summary(first.run, True)
    assert out.read_bytes() == before
    second = batch(artifact, written(windows(3), tmp_path / "q.parquet"), out)
    assert not second.again
    assert len(read(out, "runs")) == 2
    assert read(out).groupby("run").size().to_dict() == {first.run.run: 6 * ROWS, second.run.run: 3 * ROWS}
    assert [path.name for path in out.parent.iterdir()] == ["f.duckdb"]


BAD: dict[str, tuple[Any, str]] = {
    "other symbol": (lambda t: t[t.symbol == "WTI"], "expected rows of SP500; got 'WTI'"),
    "twice": (lambda t: pd.concat([t, t.iloc[[5]]]), "expected one price of WTI on 2010-01-"),
    "few rows": (lambda t: t[t.date < "2010-02-01"], "at least 31 rows are needed; got 19"),
    "few prices": (lambda t: t.assign(price=t.price.where(t.date > "2010-03-01")), "more than 30 positive prices"),
    "no date": (lambda t: t.assign(date=t.date.where(t.index != 8)), "row 9: expected a date; got none"),
    "old": (lambda t: t.assign(date=t.date - pd.Timedelta(days=16000)), "a date from 1970-01-01 to 2060-12-31"),
    "no symbol": (lambda t: t.assign(symbol=t.symbol.where(t.index != 8)), "row 9: expected a symbol; got none"),
    "infinite price": (lambda t: t.assign(price=t.price.where(t.index != 8, -np.inf)), "row 9: expected a finite"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_panel_is_refused_by_itself(artifact: Artifact, tmp_path: Path, kind: str) -> None:
    change, why = BAD[kind]
    bad = change(windows(1)).assign(panel="bad 'é\"")
    path = written(pd.concat([bad, windows(2)]), tmp_path / "p.parquet")
    run = batch(artifact, path, tmp_path / "f.duckdb").run
    assert (run.panels, run.answered, run.refused, run.forecasts) == (3, 2, 1, 2 * ROWS)
    found = refusals(tmp_path / "f.duckdb")
    assert list(found) == ["bad 'é\""]
    assert why in found["bad 'é\""]


def test_text_numbers_and_nameless_panels(artifact: Artifact, tmp_path: Path) -> None:
    text = windows(2).astype({"price": str, "date": str})
    text.loc[100, "price"] = "n.a."
    text["panel"] = text["panel"].where(text.index < 150)
    batch(artifact, written(text, tmp_path / "p.parquet"), tmp_path / "f.duckdb")
    found = refusals(tmp_path / "f.duckdb")
    place = tmp_path / "p.parquet"
    assert found["p0"] == f"{place}, row 101: expected a price; got 'n.a.'"
    assert found[None] == f"{place}, row 151: expected the name of a panel; got none in {len(text) - 150} rows"
    assert "expected rows of SP500; got 'WTI'" in found["p1"]


def test_a_timestamp_is_its_day_and_a_number_is_a_name(artifact: Artifact, tmp_path: Path) -> None:
    plain = windows(2)
    batch(artifact, written(plain, tmp_path / "p.parquet"), tmp_path / "f.duckdb")
    zoned = plain.assign(date=(plain.date + pd.Timedelta(hours=22)).dt.tz_localize("America/New_York"))
    zoned = zoned.assign(panel=plain.panel.str[1:].astype(int), comment="x").rename(columns={"price": "Close"})
    run = batch(artifact, written(zoned, tmp_path / "z.parquet"), tmp_path / "g.duckdb").run
    assert run.answered == 2
    one, other = read(tmp_path / "f.duckdb"), read(tmp_path / "g.duckdb")
    assert (one.panel.str[1:] == other.panel).all()
    assert one.drop(columns=["run", "panel"]).equals(other.drop(columns=["run", "panel"]))


def test_a_folder_a_pattern_a_table_and_a_panel(artifact: Artifact, forecaster: Forecaster, tmp_path: Path) -> None:
    table, folder = windows(), tmp_path / "panels"
    (folder / "more").mkdir(parents=True)
    written(table[::2], folder / "a.parquet")
    written(table[1::2], folder / "more" / "b.parquet")
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute('CREATE TABLE "my prices" AS SELECT * FROM rows')
    sources = [folder, folder / "**/*.parquet", f"{tmp_path / 'p.duckdb'}:my prices"]
    found = []
    for k, source in enumerate(sources):
        assert holds_panels(str(source))
        batch(artifact, source, tmp_path / f"{k}.duckdb")
        found.append(read(tmp_path / f"{k}.duckdb").drop(columns="run"))
    assert len(found[0]) == 6 * ROWS
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    assert (
        batch(artifact, f"{tmp_path / 'p.duckdb'}:my prices", tmp_path / "p.duckdb").run.answered == 6
    )  # the same file
    run = batch(artifact, data.embedded(), tmp_path / "one.duckdb").run
    expected = forecast.predict(forecaster, data.embedded()).log_returns
    assert run.answered == 1
    got = read(tmp_path / "one.duckdb").sort_values(["horizon", "symbol", "level"])["log_return"].to_numpy()
    assert np.array_equal(np.sort(got), np.sort(expected.numpy().ravel()))


def no_table(tmp_path: Path) -> str:
    duckdb.connect(str(tmp_path / "x.duckdb")).close()
    return f"{tmp_path / 'x.duckdb'}:prices"


def damaged(tmp_path: Path) -> str:
    path = written(windows(1), tmp_path / "d.parquet")
    path.write_bytes(path.read_bytes()[:-10])
    return str(path)


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "no file": (lambda p: p / "x.parquet", "there are none at"),
    "no table": (no_table, "expected a table of .*it has none.* got 'prices'"),
    "no database": (lambda p: f"{p / 'y.duckdb'}:t", "there is no file"),
    "damaged": (damaged, "expected a whole Parquet file"),
    "empty folder": (lambda p: p, "there are none at"),
    "no rows": (lambda p: written(windows(1)[:0], p / "e.parquet"), "expected rows; got none"),
    "no panel": (lambda p: written(windows(1).drop(columns="panel"), p / "e.parquet"), "expected columns panel,date"),
    "no price": (lambda p: written(windows(1).drop(columns="price"), p / "e.parquet"), "close or price or value"),
    "wrong date": (lambda p: written(windows(1).assign(date=3), p / "e.parquet"), "'date': expected dates; got BIGINT"),
    "wrong price": (lambda p: written(windows(1).assign(price=True), p / "e.parquet"), "expected prices; got BOOLEAN"),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_table_that_is_none_is_refused_in_words(artifact: Artifact, tmp_path: Path, kind: str) -> None:
    make, why = BAD_TABLES[kind]
    source = make(tmp_path)
    with pytest.raises(ValueError, match=why):
        batch(artifact, source, tmp_path / "out" / "f.duckdb")
    assert not (tmp_path / "out" / "f.duckdb").exists()


def test_results_that_cannot_be_written_are_refused_in_words(artifact: Artifact, tmp_path: Path) -> None:
    path = written(windows(1), tmp_path / "p.parquet")
    (tmp_path / "text.duckdb").write_text("no database" * 1000)
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE runs (name TEXT)")
    for name, why in (
        ("", "which is none"),
        ("text.duckdb", "to be a DuckDB file"),
        ("other.duckdb", "a table runs of"),
    ):
        with pytest.raises(ValueError, match=why):
            batch(artifact, path, tmp_path / name)


@given(st.lists(st.integers(1, 4), max_size=30), st.integers(1, 5))
def test_every_place_is_in_one_group_of_its_length(lengths: list[int], most: int) -> None:
    found = list(groups(lengths, lambda length: most))
    assert sorted(place for group in found for place in group) == list(range(len(lengths)))
    assert all(len({lengths[place] for place in group}) == 1 and 0 < len(group) <= most for group in found)


@given(st.lists(st.tuples(st.sampled_from([None, "", "a", "b", "'é"]), st.integers(0, 3)), max_size=20), st.data())
def test_rows_of_a_panel_come_together_however_they_are_cut(rows: list[tuple[str | None, int]], draw: Any) -> None:
    import pyarrow as pa

    rows = sorted(rows, key=lambda row: (row[0] is not None, row[0] or ""))
    table = pa.table({"panel": pa.array([row[0] for row in rows], pa.string()), "row": [row[1] for row in rows]})
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)])]
    batches = [piece for part in parts for piece in part.combine_chunks().to_batches()]
    found = list(by_panel(batches))
    assert [each.panel for each in found] == list(dict.fromkeys(row[0] for row in rows))
    assert [(each.panel, row) for each in found for row in each.table["row"].to_pylist()] == rows
    assert all(each.number == each.table.num_rows for each in found)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 5), block=st.integers(1, 400))
def test_any_order_of_rows_gives_the_same_table(
    artifact: Artifact, tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, block: int
) -> None:
    folder = tmp_path_factory.mktemp("order")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module._run, "BLOCK", block)
        shuffled = windows(count).sample(frac=1, random_state=seed)
        batch(artifact, written(shuffled, folder / "p.parquet"), folder / "f.duckdb")
    whole = folder / "whole.duckdb"
    batch(artifact, written(windows(count), folder / "q.parquet"), whole)
    assert read(folder / "f.duckdb").drop(columns="run").equals(read(whole).drop(columns="run"))


KILLED = """
import sys
from torchcommodity.export import Artifact
from torchcommodity.batch import _run as run, batch

run.BLOCK = 100
print("ready", flush=True)
batch(Artifact.load(sys.argv[1]), sys.argv[2], sys.argv[3], progress=lambda done, *_: print(done, flush=True))
"""


def test_killed_it_is_carried_on_to_the_same_table(
    artifact: Artifact, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = written(windows(40), tmp_path / "p.parquet"), tmp_path / "f.duckdb"
    command = [sys.executable, "-c", KILLED, str(file), str(path), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(1 + 5):  # so many blocks are done
            process.stdout.readline()
        with pytest.raises(ValueError, match="another process is at work"):
            batch(artifact, path, out)
        process.send_signal(signal.SIGKILL)
    assert not out.exists()  # nothing half-written
    monkeypatch.setattr(module._run, "BLOCK", 100)
    done: list[int] = []
    carried_on = batch(artifact, path, out, progress=lambda rows, *_: done.append(rows)).run
    assert (carried_on.panels, carried_on.forecasts, len(read(out))) == (40, 40 * ROWS, 40 * ROWS)
    assert len(done) <= 40 - 5 + 1  # not from the start
    undisturbed = tmp_path / "whole.duckdb"
    batch(artifact, path, undisturbed)
    assert read(out).equals(read(undisturbed))
    assert {each.name for each in tmp_path.iterdir()} == {"p.parquet", "f.duckdb", "whole.duckdb"}
