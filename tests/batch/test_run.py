"""`batch.run`: every panel has the bits of its forecast alone; a run is in the results whole or not at all."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcommodity import batch, data, forecast
from torchcommodity.batch import _ranges as module
from torchcommodity.export import Artifact
from torchcommodity.forecast import Forecaster

Windows = Callable[..., pd.DataFrame]
ROWS = 2 * 3 * 2  # forecasts of a panel: horizons, levels, symbols


def write(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path, index=False)
    return path


def read(out: Path, table: str = "forecasts") -> pd.DataFrame:
    with duckdb.connect(str(out), read_only=True) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchdf()


def reasons(out: Path) -> dict[Any, str]:
    with duckdb.connect(str(out), read_only=True) as connection:
        return dict(connection.execute("SELECT panel, reason FROM rejected").fetchall())


def test_run_equals_predict_bitwise(
    artifact: Artifact, forecaster: Forecaster, prices: data.Panel, windows: Windows, tmp_path: Path
) -> None:
    path = write(windows(7).sample(frac=1, random_state=0), tmp_path / "p.parquet")
    run = batch.run(artifact, path, tmp_path / "f.duckdb").run
    assert (run.panels, run.completed, run.forecasts) == (7, 7, 7 * ROWS)
    forecasts = read(tmp_path / "f.duckdb")
    for k in range(7):
        dates = prices.dates[7 * k : 7 * k + 60 + k % 3]
        expected = forecast.predict(forecaster, prices.between(dates[0], dates[-1]))
        joined = forecasts[forecasts["panel"] == f"p{k}"].merge(
            expected.to_pandas(), on=["origin", "symbol", "horizon", "level"], suffixes=("", "_alone")
        )
        assert len(joined) == ROWS
        assert (joined["log_return"] == joined["log_return_alone"]).all()
        assert (joined["price"] == joined["price_alone"]).all()
        assert set(joined["last_price"]) == set(expected.last.tolist())


def test_run_of_a_forecaster_equals_run_of_its_artifact(
    artifact: Artifact, forecaster: Forecaster, windows: Windows, tmp_path: Path
) -> None:
    path = write(windows(4), tmp_path / "p.parquet")
    runs = [batch.run(model, path, tmp_path / f"{k}.duckdb").run for k, model in enumerate((artifact, forecaster))]
    tables = [read(tmp_path / f"{k}.duckdb").drop(columns="run") for k in range(2)]
    assert tables[0].equals(tables[1])
    assert runs[0].completed == runs[1].completed == 4
    assert runs[0].run != runs[1].run  # another file, another checksum
    assert batch.run(forecaster, path, tmp_path / "1.duckdb").existed


def test_run_rejects_other_models(windows: Windows, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="batch: model must be a Forecaster or an Artifact; got str"):
        batch.run("model.pt2", write(windows(1), tmp_path / "p.parquet"), tmp_path / "f.duckdb")  # type: ignore[arg-type]


def test_run_again_changes_nothing(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    path, out = write(windows(), tmp_path / "p.parquet"), tmp_path / "new" / "f.duckdb"
    first = batch.run(artifact, path, out)
    content = out.read_bytes()
    assert batch.run(artifact, path, out) == batch.Summary(first.run, True)
    assert out.read_bytes() == content
    second = batch.run(artifact, write(windows(3), tmp_path / "q.parquet"), out)
    assert not second.existed
    assert len(read(out, "runs")) == 2
    assert read(out).groupby("run").size().to_dict() == {first.run.run: 6 * ROWS, second.run.run: 3 * ROWS}
    assert [path.name for path in out.parent.iterdir()] == ["f.duckdb"]


def test_run_writes_a_folder_of_parquet_files_with_the_rows_of_the_duckdb_file(
    artifact: Artifact, windows: Windows, tmp_path: Path
) -> None:
    path, out = (
        write(windows(4).assign(panel=lambda t: t.panel.where(t.panel != "p2")), tmp_path / "p.parquet"),
        tmp_path,
    )
    batch.run(artifact, path, out / "f.duckdb")
    run = batch.run(artifact, path, out / "f.parquet").run
    folder = out / "f.parquet" / f"run={run.run[:16]}"
    for table in ("forecasts", "rejected"):
        written = duckdb.sql(f"SELECT * FROM read_parquet('{folder}/{table}.parquet') ORDER BY ALL").df()
        assert written.drop(columns="run").equals(read(out / "f.duckdb", table).drop(columns="run"))
    assert (run.completed, run.rejected) == (3, 1)
    assert batch.run(artifact, path, out / "f.parquet") == batch.Summary(run, True)
    second = batch.run(artifact, write(windows(2), tmp_path / "q.parquet"), out / "f.parquet").run
    assert len(duckdb.sql(f"FROM read_parquet('{out}/f.parquet/*/runs.parquet')").df()) == 2
    assert pd.read_parquet(out / "f.parquet" / f"run={second.run[:16]}" / "forecasts.parquet").shape == (2 * ROWS, 9)
    assert {path.name for path in tmp_path.iterdir()} == {"p.parquet", "q.parquet", "f.duckdb", "f.parquet"}


@pytest.mark.parametrize("total", [2, 3, 9])
def test_shards_together_are_the_run_of_the_whole_table(
    artifact: Artifact, windows: Windows, tmp_path: Path, total: int
) -> None:
    table = windows(7)
    path = write(table.assign(panel=table.panel.where(table.panel != "p4")), tmp_path / "p.parquet")  # one has no name
    whole = batch.run(artifact, path, tmp_path / "whole.duckdb").run
    shards = [batch.run(artifact, path, tmp_path / "f.duckdb", shard=(i + 1, total)).run for i in range(total)]
    for counted in ("panels", "completed", "rejected", "forecasts"):
        assert sum(getattr(run, counted) for run in shards) == getattr(whole, counted)
    for name in ("forecasts", "rejected"):
        parts, expected = (read(tmp_path / out, name).drop(columns="run") for out in ("f.duckdb", "whole.duckdb"))
        assert parts.sort_values(list(parts), ignore_index=True).equals(expected)
    assert [run.source for run in shards] == [f"{path}, shard {i + 1} of {total}" for i in range(total)]
    assert batch.run(artifact, path, tmp_path / "f.duckdb", shard=(2, total)) == batch.Summary(shards[1], True)


def test_shards_have_about_equal_rows_and_may_be_empty(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    path = write(windows(4), tmp_path / "p.parquet")
    panels = [batch.run(artifact, path, tmp_path / "f.parquet", shard=(i + 1, 8)).run.panels for i in range(8)]
    assert sorted(panels) == [0] * 4 + [1] * 4
    forecasts = [pq.read_table(path, partitioning=None) for path in (tmp_path / "f.parquet").rglob("forecasts.parquet")]
    assert len({tuple(table.schema.types) for table in forecasts}) == 1
    assert pa.concat_tables(forecasts, promote_options="default").shape == (4 * ROWS, 9)


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0)])
def test_run_rejects_a_shard_that_does_not_exist(
    artifact: Artifact, windows: Windows, tmp_path: Path, shard: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match=r"shard must be \(i, n\) with i from 1 to n; got"):
        batch.run(artifact, write(windows(1), tmp_path / "p.parquet"), tmp_path / "f.duckdb", shard=shard)


def test_run_rejects_a_parquet_file_as_out(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    path = write(windows(1), tmp_path / "p.parquet")
    with pytest.raises(
        ValueError, match=r"out must be a folder if it ends with \.parquet; got .*p\.parquet, which is a"
    ):
        batch.run(artifact, path, path)


BAD_PANELS: dict[str, tuple[Any, str]] = {
    "other symbol": (lambda t: t[t.symbol == "WTI"], "expected rows of BRENT; got 'WTI'"),
    "twice": (lambda t: pd.concat([t, t.iloc[[5]]]), "expected one price of WTI on 2010-01-"),
    "few rows": (lambda t: t[t.date < "2010-02-01"], "at least 31 rows are needed; got 19"),
    "few prices": (lambda t: t.assign(price=t.price.where(t.date > "2010-03-01")), "more than 30 positive prices"),
    "no date": (lambda t: t.assign(date=t.date.where(t.index != 8)), "row 9: expected a date; got none"),
    "far": (lambda t: t.assign(date=t.date + pd.Timedelta(days=72000)), "a date from 1600-01-01 to 2200-12-31"),
    "no symbol": (lambda t: t.assign(symbol=t.symbol.where(t.index != 8)), "row 9: expected a symbol; got none"),
    "infinite price": (lambda t: t.assign(price=t.price.where(t.index != 8, -np.inf)), "row 9: expected a finite"),
}


@pytest.mark.parametrize("kind", BAD_PANELS)
def test_run_rejects_a_bad_panel_and_forecasts_the_others(
    artifact: Artifact, windows: Windows, tmp_path: Path, kind: str
) -> None:
    change, reason = BAD_PANELS[kind]
    bad = change(windows(1)).assign(panel="bad 'é\"")
    path = write(pd.concat([bad, windows(2)]), tmp_path / "p.parquet")
    run = batch.run(artifact, path, tmp_path / "f.duckdb").run
    assert (run.panels, run.completed, run.rejected, run.forecasts) == (3, 2, 1, 2 * ROWS)
    rejected = reasons(tmp_path / "f.duckdb")
    assert list(rejected) == ["bad 'é\""]
    assert reason in rejected["bad 'é\""]


def test_run_rejects_bad_text_and_panels_without_a_name(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    table = windows(2).astype({"price": str, "date": str})
    table.loc[100, "price"] = "n.a."
    table["panel"] = table["panel"].where(table.index < 150)
    path = write(table, tmp_path / "p.parquet")
    batch.run(artifact, path, tmp_path / "f.duckdb")
    rejected = reasons(tmp_path / "f.duckdb")
    got = "got 'n.a.' (leave the cell empty where there is no price)"
    assert rejected["p0"] == f"{path}, row 101: expected a price; {got}"
    assert rejected[None] == f"{path}, row 151: expected the name of a panel; got none in {len(table) - 150} rows"
    assert "expected rows of BRENT; got 'WTI'" in rejected["p1"]


def test_run_takes_timestamps_integer_names_and_other_columns(
    artifact: Artifact, windows: Windows, tmp_path: Path
) -> None:
    plain = windows(2)
    batch.run(artifact, write(plain, tmp_path / "p.parquet"), tmp_path / "f.duckdb")
    zoned = plain.assign(date=(plain.date + pd.Timedelta(hours=22)).dt.tz_localize("America/New_York"))
    zoned = zoned.assign(panel=plain.panel.str[1:].astype(int), comment="x").rename(columns={"price": "Close"})
    assert batch.run(artifact, write(zoned, tmp_path / "z.parquet"), tmp_path / "g.duckdb").run.completed == 2
    expected, result = read(tmp_path / "f.duckdb"), read(tmp_path / "g.duckdb")
    assert (expected.panel.str[1:] == result.panel).all()
    assert expected.drop(columns=["run", "panel"]).equals(result.drop(columns=["run", "panel"]))


FORMS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "days first": lambda t: t.assign(date=t.date.dt.strftime("%d/%m/%Y")),
    "names of months": lambda t: t.assign(date=t.date.dt.strftime("%b %d, %Y")),
    "times": lambda t: t.assign(date=t.date.dt.strftime("%Y-%m-%d 16:30:00-05:00")),
    "integers": lambda t: t.assign(date=t.date.dt.strftime("%Y%m%d").astype(int)),
    "decimal commas": lambda t: t.assign(price=t.price.astype(str).str.replace(".", ",")),
    "names of columns": lambda t: t.set_axis(["Panel", "ds", "unique_id", "y"], axis=1),
    "another language": lambda t: t.set_axis(["panel", "Datum", "Rohstoff", "Kurs"], axis=1),
}


@pytest.mark.parametrize("form", FORMS)
def test_run_takes_the_dates_numbers_and_columns_that_read_takes(
    artifact: Artifact, windows: Windows, tmp_path: Path, form: str
) -> None:
    plain = windows(3)[["panel", "date", "symbol", "price"]]
    batch.run(artifact, write(plain, tmp_path / "p.parquet"), tmp_path / "f.duckdb")
    batch.run(artifact, write(FORMS[form](plain), tmp_path / "q.parquet"), tmp_path / "g.duckdb")
    assert len(read(tmp_path / "g.duckdb")) == 3 * ROWS
    assert read(tmp_path / "g.duckdb").drop(columns="run").equals(read(tmp_path / "f.duckdb").drop(columns="run"))


def test_run_rejects_the_panel_of_a_date_in_another_style(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    table = windows(2)
    table["date"] = table.date.dt.strftime("%d.%m.%Y")
    table.loc[7, "date"] = "2010-01-05"
    path = write(table, tmp_path / "p.parquet")
    assert batch.run(artifact, path, tmp_path / "f.duckdb").run.completed == 1
    expected = "expected a date such as 20.04.2020, the style of the first row; got '2010-01-05'"
    assert reasons(tmp_path / "f.duckdb") == {"p0": f"{path}, row 8: {expected}"}


def test_run_rejects_a_table_whose_dates_can_be_mistaken(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    table = windows(1)
    table["date"] = table.date.dt.strftime("%d/01/%Y").where(table.date.dt.day <= 12, "01/01/2010")
    with pytest.raises(ValueError, match=r"p\.parquet: 'date': day and month can be mistaken .* got '0[0-9]/01/2010'$"):
        batch.run(artifact, write(table, tmp_path / "p.parquet"), tmp_path / "f.duckdb")


def test_run_takes_a_folder_a_pattern_and_a_duckdb_table(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    table, folder = windows(), tmp_path / "panels"
    (folder / "more").mkdir(parents=True)
    write(table[::2], folder / "a.parquet")
    write(table[1::2], folder / "more" / "b.parquet")
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute('CREATE TABLE "my prices" AS SELECT * FROM rows')
    in_duckdb = f"{tmp_path / 'p.duckdb'}:my prices"
    results = []
    for k, source in enumerate([folder, folder / "**/*.parquet", in_duckdb]):
        assert batch.is_panel_table(source)
        batch.run(artifact, source, tmp_path / f"{k}.duckdb")
        results.append(read(tmp_path / f"{k}.duckdb").drop(columns="run"))
    assert len(results[0]) == 6 * ROWS
    assert results[0].equals(results[1])
    assert results[0].equals(results[2])
    assert batch.run(artifact, in_duckdb, tmp_path / "p.duckdb").run.completed == 6  # source and results in one file


def test_run_takes_one_panel_of_any_source(artifact: Artifact, forecaster: Forecaster, tmp_path: Path) -> None:
    expected = np.sort(forecast.predict(forecaster, data.embedded()).log_returns.numpy().ravel())
    for k, source in enumerate([data.embedded(), data.embedded().to_pandas(), "embedded"]):
        assert batch.run(artifact, source, tmp_path / f"{k}.duckdb").run.completed == 1
        assert np.array_equal(np.sort(read(tmp_path / f"{k}.duckdb")["log_return"].to_numpy()), expected)


def empty_duckdb(folder: Path, _: Windows) -> str:
    duckdb.connect(str(folder / "x.duckdb")).close()
    return f"{folder / 'x.duckdb'}:prices"


def truncated(folder: Path, windows: Windows) -> str:
    path = write(windows(1), folder / "d.parquet")
    path.write_bytes(path.read_bytes()[:-10])
    return str(path)


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "no file": (lambda p, w: p / "x.parquet", "x.parquet: expected a readable file; got No such file"),
    "no pattern": (lambda p, w: p / "*.parquet", "with no such file"),
    "no table": (empty_duckdb, "expected a table of .*it has none.* got 'prices'"),
    "no database": (lambda p, w: f"{p / 'y.duckdb'}:t", "which does not exist"),
    "truncated": (truncated, "expected a complete Parquet file"),
    "empty folder": (lambda p, w: p, "with no such file"),
    "no rows": (lambda p, w: write(w(1)[:0], p / "e.parquet"), "expected rows; got none"),
    "no symbol": (
        lambda p, w: write(w(1).drop(columns="symbol"), p / "e.parquet"),
        "expected columns of dates, symbols and prices; got date",
    ),
    "no price": (
        lambda p, w: write(w(1).drop(columns="price"), p / "e.parquet"),
        "expected a price column, such as settle or close or price; got none among date, symbol",
    ),
    "wrong date": (
        lambda p, w: write(w(1).assign(date=3), p / "e.parquet"),
        "'date': expected a date, such as 2020-04-20; got '3'",
    ),
    "wrong price": (lambda p, w: write(w(1).assign(price=True), p / "e.parquet"), "expected prices; got BOOLEAN"),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_run_rejects_a_bad_table(artifact: Artifact, windows: Windows, tmp_path: Path, kind: str) -> None:
    make, message = BAD_TABLES[kind]
    source = make(tmp_path, windows)
    with pytest.raises(ValueError, match=message):
        batch.run(artifact, source, tmp_path / "out" / "f.duckdb")
    assert not (tmp_path / "out" / "f.duckdb").exists()


def test_run_rejects_results_that_cannot_be_written(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    path = write(windows(1), tmp_path / "p.parquet")
    (tmp_path / "folder.duckdb").mkdir()
    (tmp_path / "text.duckdb").write_text("no database" * 1000)
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE runs (name TEXT)")
    messages = {"folder": "must be a file", "text": "to be a writable DuckDB file", "other": "in the table runs of"}
    for name, message in messages.items():
        with pytest.raises(ValueError, match=message):
            batch.run(artifact, path, tmp_path / f"{name}.duckdb")


def test_run_on_a_full_disk_leaves_no_part_of_new_results(artifact: Artifact, windows: Windows, tmp_path: Path) -> None:
    table, limits = write(windows(1), tmp_path / "p.parquet"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))  # enough for the blocks of the run
    try:
        with pytest.raises(ValueError, match="File too large"):
            batch.run(artifact, table, tmp_path / "out.duckdb")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "out.duckdb").exists()
    assert not batch.run(artifact, table, tmp_path / "out.duckdb").existed


@pytest.mark.parametrize("name", ["forecasts.csv", "forecasts", ""])
def test_run_rejects_out_that_is_neither_duckdb_nor_parquet(
    artifact: Artifact, windows: Windows, tmp_path: Path, name: str
) -> None:
    path = write(windows(1), tmp_path / "p.parquet")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"batch: out must be a DuckDB file, \*\.duckdb, or a folder .* got "):
        batch.run(artifact, path, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 5), block=st.integers(1, 400))
def test_run_does_not_depend_on_the_order_of_rows(
    artifact: Artifact, windows: Windows, tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, block: int
) -> None:
    folder = tmp_path_factory.mktemp("order")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", block)
        shuffled = windows(count).sample(frac=1, random_state=seed)
        batch.run(artifact, write(shuffled, folder / "p.parquet"), folder / "shuffled.duckdb")
    batch.run(artifact, write(windows(count), folder / "q.parquet"), folder / "sorted.duckdb")
    results = [read(folder / f"{name}.duckdb").drop(columns="run") for name in ("shuffled", "sorted")]
    assert results[0].equals(results[1])


KILLED = """
import sys
from torchcommodity import batch
from torchcommodity.batch import _ranges as module
from torchcommodity.export import Artifact

module.BLOCK_ROWS = 100
print("ready", flush=True)
batch.run(Artifact.load(sys.argv[1]), sys.argv[2], sys.argv[3], progress=lambda done, *_: print(done, flush=True))
"""


@pytest.mark.slow
@pytest.mark.process
def test_run_resumes_after_kill(
    artifact: Artifact, artifact_file: Path, windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(windows(40), tmp_path / "p.parquet"), tmp_path / "f.duckdb"
    command = [sys.executable, "-c", KILLED, str(artifact_file), str(path), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(1 + 5):  # five blocks are done
            process.stdout.readline()
        with pytest.raises(ValueError, match="another process is using"):
            batch.run(artifact, path, out)
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    monkeypatch.setattr(module, "BLOCK_ROWS", 100)
    progress: list[int] = []
    resumed = batch.run(artifact, path, out, progress=lambda rows, *_: progress.append(rows)).run
    assert (resumed.panels, resumed.forecasts, len(read(out))) == (40, 40 * ROWS, 40 * ROWS)
    assert len(progress) <= 40 - 5 + 1  # not from the start
    batch.run(artifact, path, tmp_path / "uninterrupted.duckdb")
    assert read(out).equals(read(tmp_path / "uninterrupted.duckdb"))
    assert {path.name for path in tmp_path.iterdir()} == {"p.parquet", "f.duckdb", "uninterrupted.duckdb"}
