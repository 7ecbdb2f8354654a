"""`batch.run` on Ray: the results of the local run, in ranges of panels, from two nodes, and after one is lost."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from torchcommodity import batch
from torchcommodity.batch import _ranges, _run
from torchcommodity.batch._ranges import PanelRange, read_blocks, split_range
from torchcommodity.export import Artifact

Windows = Callable[..., pd.DataFrame]

pytestmark = pytest.mark.filterwarnings(  # of Ray itself
    "ignore::DeprecationWarning:ray.*", "ignore::FutureWarning", "ignore::ResourceWarning"
)


@pytest.fixture
def table(windows: Windows, tmp_path: Path) -> Path:
    """24 panels, one of them without a name and one without a symbol, in random order."""
    rows = windows(24)
    rows = rows[(rows["panel"] != "p7") | (rows["symbol"] == "WTI")]
    rows["panel"] = rows["panel"].where(rows["panel"] != "p3")
    rows.sample(frac=1, random_state=0).to_parquet(tmp_path / "p.parquet", index=False)
    return tmp_path / "p.parquet"


def tables(out: Path) -> list[pd.DataFrame]:
    with duckdb.connect(str(out), read_only=True) as connection:
        counts = connection.sql("SELECT * EXCLUDE (started, finished) FROM runs").df()
        return [counts, *(connection.sql(f"FROM {name}").df() for name in ("forecasts", "rejected"))]


def test_ranges_cover_every_panel_once(table: Path, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        columns = "panel, date, symbol, price, 0 AS file, file_row_number AS row"
        rows = f"read_parquet('{table}', file_row_number = true)"
        connection.execute(f"CREATE VIEW panels AS SELECT {columns} FROM {rows}")
        whole = [rows.name for block in read_blocks(connection, PanelRange(), tmp_path) for rows in block]
        ranges = list(split_range(connection, PanelRange(), 300))
        parts = [[rows for block in read_blocks(connection, part, tmp_path) for rows in block] for part in ranges]
    assert len(ranges) == 8
    assert [rows.name for part in parts for rows in part] == whole
    assert all(sum(rows.total for rows in part) >= 300 for part in parts[:-1])
    assert None in whole
    assert all(first < second for first, second in pairwise(whole[1:]))


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("lost", [False, True], ids=["two nodes", "a node is lost"])
def test_run_on_ray_equals_the_local_run(
    artifact: Artifact, table: Path, tmp_path: Path, cluster: Any, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_run, "RANGE_ROWS", 300)
    node = cluster.add_node(num_cpus=1)

    def lose_node(*_: object) -> None:
        if node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)

    progress = lose_node if lost else None
    try:
        batch.run(artifact, table, tmp_path / "ray.duckdb", executor="ray", address=cluster.address, progress=progress)
    finally:
        if node in cluster.worker_nodes:
            cluster.remove_node(node)
    monkeypatch.setattr(_ranges, "BLOCK_ROWS", 200)
    batch.run(artifact, table, tmp_path / "local.duckdb")
    for ours, expected in zip(tables(tmp_path / "ray.duckdb"), tables(tmp_path / "local.duckdb")):
        pd.testing.assert_frame_equal(ours, expected, check_exact=True)


@pytest.mark.slow
@pytest.mark.cluster
def test_run_on_ray_says_which_node_cannot_read_the_table(
    artifact: Artifact, table: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecast = _run.forecast_on_ray
    monkeypatch.setattr(
        _run, "forecast_on_ray", lambda a, source, *rest: forecast(a, tmp_path / "other.parquet", *rest)
    )
    with pytest.raises(ValueError, match=r"every node must be able to read .*other\.parquet; on "):
        batch.run(artifact, table, tmp_path / "f.duckdb", executor="ray", address=cluster.address)
    assert not (tmp_path / "f.duckdb").exists()


def test_run_rejects_an_address_without_ray(artifact: Artifact, table: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="address must be None for the local executor; got 'localhost:6379'"):
        batch.run(artifact, table, tmp_path / "f.duckdb", address="localhost:6379")
