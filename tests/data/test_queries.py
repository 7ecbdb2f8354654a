"""Queries and views of databases that do not end: the time limit, Ctrl-C and SIGTERM end them."""

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from torchcommodity import data

QUERY = "SELECT DATE '2020-01-01' AS date, sum(random()) AS price FROM range(100000000000000) GROUP BY ALL"
COUNT = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT '2020-01-01' AS date, sum(i) AS p FROM n"
)


def test_queries_and_views_have_a_time_limit(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.execute(f"CREATE VIEW prices AS {QUERY}")
    database = sqlite3.connect(tmp_path / "v.sqlite")
    database.execute(f"CREATE VIEW prices AS {COUNT}")
    database.close()
    for source in (f"sql:{QUERY}", f"{tmp_path / 'v.duckdb'}:prices", f"{tmp_path / 'v.sqlite'}:prices"):
        start = time.monotonic()
        with pytest.raises(data.DataError, match=r"expected a result within 0\.3 s"):
            data.read(source, query_timeout=0.3)
        assert time.monotonic() - start < 20
    for seconds in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(
            data.DataError, match=r"sql: expected a positive number of seconds .*; got -?(0|1.0|nan|inf)"
        ):
            data.read("sql:SELECT DATE '2020-01-01' AS date, 1.0 AS price", query_timeout=seconds)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_query_with_one_line(number: int, status: int) -> None:
    command = [sys.executable, "-m", "torchcommodity", "data", "check", f"sql:{QUERY}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(15)  # imports, then the query
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors.count("\n")) == (status, 1), errors
