"""Tables of DuckDB and SQLite files, and SQL queries."""

import os
import resource
import sqlite3
import subprocess
import sys

import duckdb
import pytest

from torchcommodity import data

ROWS = [("2020-04-17", "WTI", 18.27), ("2020-04-20", "WTI", -37.63), ("2020-04-20", "BRENT", 25.57)]


@pytest.fixture
def duck(tmp_path):
    path = tmp_path / "prices.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE spot (date DATE, symbol TEXT, price DOUBLE)")
        connection.executemany("INSERT INTO spot VALUES (?, ?, ?)", ROWS)
    return path


@pytest.fixture
def lite(tmp_path):
    path = tmp_path / "prices.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "my ""spot""" (date TEXT, symbol TEXT, price REAL)')
        connection.executemany('INSERT INTO "my ""spot""" VALUES (?, ?, ?)', ROWS)
    connection.close()
    return path


def check(panel):
    assert panel.symbols == ("WTI", "BRENT")
    assert panel.values.tolist()[1] == [-37.63, 25.57]


def test_read_the_only_table(duck, lite):
    check(data.read(duck))
    check(data.read(str(lite)))


def test_read_a_named_table(duck, lite):
    check(data.read(f"{duck}:spot"))
    check(data.read(f'{lite}:my "spot"'))


def test_read_names_the_tables_if_there_are_several(duck):
    with duckdb.connect(str(duck)) as connection:
        connection.execute("CREATE SCHEMA old; CREATE TABLE old.spot AS FROM spot; CREATE VIEW oil AS FROM spot")
    for source, got in ((f"{duck}", "no name"), (f"{duck}:spots", "'spots'")):
        words = rf"expected .*prices.duckdb:TABLE with one of its tables \(oil, spot, old.spot\); got {got}"
        with pytest.raises(data.DataError, match=words):
            data.read(source)
    check(data.read(f"{duck}:old.spot"))
    check(data.read(f"{duck}:oil"))


def test_table_names_are_not_sql(duck, lite):
    for source in (f"{duck}:spot; DROP TABLE spot", f'{duck}:spot" UNION SELECT 1 --', f"{lite}:x' OR '1'='1"):
        with pytest.raises(data.DataError, match="with one of its tables"):
            data.read(source)
    check(data.read(duck))


def test_a_view_cannot_read_other_files(duck, tmp_path):
    (tmp_path / "secret.csv").write_text("date,WTI\n2020-04-20,1\n")
    with duckdb.connect(str(duck)) as connection:
        connection.execute(f"CREATE VIEW oil AS FROM read_csv('{tmp_path}/secret.csv')")
    with pytest.raises(data.DataError, match="file system operations are disabled"):
        data.read(f"{duck}:oil")


def test_read_a_database_that_another_process_writes(duck):
    code = f"import duckdb, time; c = duckdb.connect({str(duck)!r}); print('open', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(data.DataError, match="another process is writing to it"):
            data.read(duck)
    finally:
        process.kill()
        process.communicate()


def test_read_rejects_damaged_databases(duck, lite):
    for path in (duck, lite):
        path.write_bytes(path.read_bytes()[:3000])
        with pytest.raises(data.DataError, match=r"expected an? (DuckDB|SQLite) file that can be opened"):
            data.read(path)


def test_sqlite_columns_of_several_types_are_text(tmp_path):
    with sqlite3.connect(tmp_path / "mixed.sqlite") as connection:
        connection.execute("CREATE TABLE t (date TEXT, WTI)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("2020-04-17", 18.27), ("2020-04-20", "n.a.")])
    connection.close()
    with pytest.raises(data.DataError, match=r"row 2: 'WTI': expected a price; got 'n.a.'"):
        data.read(tmp_path / "mixed.sqlite")


def test_read_a_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.write(data.embedded(["WTI", "BRENT"]), "prices.parquet")
    panel = data.read("sql:SELECT date, symbol, price FROM 'prices.parquet' WHERE symbol = 'WTI' AND price > 100")
    assert panel.symbols == ("WTI",)
    assert float(panel.values.min()) > 100
    join = "sql:WITH w AS (FROM read_parquet('prices.parquet') WHERE symbol = 'WTI') FROM w SELECT date, price AS WTI"
    assert data.read(join).symbols == ("WTI",)


REFUSED = {
    "COPY (SELECT 1) TO 'out.csv'": "expected one SELECT",
    "WITH a AS (COPY (SELECT 1) TO 'out.csv') SELECT * FROM a": "got COPY",
    "SELECT 1; SELECT 2": "2 statements",
    "": "0 statements",
    "SELEC 1": "syntax error",
    "INSTALL httpfs": "expected one SELECT",
    "ATTACH 'out.duckdb'": "expected one SELECT",
    "FROM 'other.duckdb'": "name its table instead, as in other.duckdb:TABLE",
    "FROM query('COPY (SELECT 1) TO ''out.csv''')": "the table function query",
    "FROM enable_logging(storage = 'file')": "the table function enable_logging",
    "FROM read_text('/etc/passwd')": "the table function read_text",
    "FROM duckdb_secrets()": "the table function duckdb_secrets",
    "SELECT * FROM 's3://bucket/prices.parquet'": "httpfs",
    "SELECT * FROM REFUSED": "does not exist",
    "SELECT * FROM 'no.parquet'": "No files found",
    "SELECT 1 AS date, (SELECT count(*) FROM glob('*')) AS WTI": "the table function glob",
}


@pytest.mark.parametrize("query", REFUSED)
def test_query_only_reads(tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(data.DataError, match=REFUSED[query]):
        data.read(f"sql:{query}")
    assert os.listdir() == []


@pytest.mark.parametrize("space", [0, 1024, 8192, 20_000])
def test_a_full_disk_leaves_no_part_of_a_new_database(tmp_path, space):
    target, limits = f"{tmp_path}/oil.duckdb:spot", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (space, limits[1]))
    try:
        with pytest.raises(data.DataError, match="File too large"):
            data.write(data.embedded(["WTI"]), target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    data.write(data.embedded(["BRENT"]), target)
    assert data.read(target).symbols == ("BRENT",)
    assert [path.name for path in tmp_path.iterdir()] == ["oil.duckdb"]
