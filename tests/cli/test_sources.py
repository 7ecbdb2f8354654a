"""`--data` and SOURCE take every kind of source; a bad one ends in one line of words."""

import boto3
import duckdb
import object_stores
import pytest

from torchcommodity import data


@pytest.fixture
def panel():
    return data.embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31")


def test_check_takes_tables_queries_and_folders(run, panel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    data.write(panel, "lake/oil.parquet")
    data.write(panel, "prices.duckdb:oil")
    sources = ("prices.duckdb", "prices.duckdb:oil", "lake", "lake/*.parquet", "sql:FROM 'lake/oil.parquet'")
    for source in sources:
        result = run("data", "check", source)
        assert result.exit_code == 0, result.stderr
        assert "2 symbols: WTI, BRENT" in result.stdout


ERRORS = {
    "prices.duckdb:gas": "with one of its tables (oil); got 'gas'",
    "nowhere.duckdb:oil": "which does not exist",
    "sql:DROP TABLE oil": "sql: expected one SELECT",
    "lake": "expected a file, or Parquet files in a folder; got a directory without one",
    "md:oil": "expected md:DATABASE.TABLE",
    "bq:oil": "expected bq:PROJECT.DATASET.TABLE",
    "s3://lake": "expected s3://BUCKET/NAME",
}


@pytest.mark.parametrize("source", ERRORS)
def test_check_rejects_sources_in_one_line(run, error, panel, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    with duckdb.connect("prices.duckdb") as connection:
        connection.execute("CREATE TABLE oil (date DATE, WTI DOUBLE)")
    result = run("data", "check", source)
    assert result.exit_code == 2
    assert ERRORS[source] in error(result)
    assert result.stderr.count("Error") == 1


def test_store_to_s3_and_back(run, panel, tmp_path, monkeypatch):
    with object_stores.serving_s3() as server:
        for name, value in (("ENDPOINT_URL", server.address), ("ACCESS_KEY_ID", "A"), ("SECRET_ACCESS_KEY", "secret")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket="lake")
        data.Store().add(panel, "oil")
        assert run("data", "export", "oil", "s3://lake/oil.parquet").exit_code == 0
        result = run("data", "check", "s3://lake/oil.parquet")
        assert result.exit_code == 0, result.stderr
        assert data.read("s3://lake/oil.parquet").equals(panel)
        result = run("data", "check", "s3://lake/gas.parquet")
        assert result.exit_code == 2
        assert (
            "s3://lake/gas.parquet: expected an object that can be read; got no such bucket or object" in result.stderr
        )
