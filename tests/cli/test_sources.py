"""`--data` and SOURCE take every kind of source; a bad one ends in one line of words."""

import boto3
import duckdb
import object_stores
import pytest
import s3fs

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


@pytest.fixture
def lake(monkeypatch):
    """A client of a local S3 server with the bucket `lake`."""
    with object_stores.serving_s3() as server:
        for name, value in (("ENDPOINT_URL", server.address), ("ACCESS_KEY_ID", "A"), ("SECRET_ACCESS_KEY", "secret")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        client = boto3.client("s3")
        client.create_bucket(Bucket="lake")
        yield client
        s3fs.S3FileSystem.clear_instance_cache()


def test_store_to_s3_and_back(run, panel, lake):
    data.Store().add(panel, "oil")
    assert run("data", "export", "oil", "s3://lake/oil.parquet").exit_code == 0
    result = run("data", "check", "s3://lake/oil.parquet")
    assert result.exit_code == 0, result.stderr
    assert data.read("s3://lake/oil.parquet").equals(panel)
    result = run("data", "check", "s3://lake/gas.parquet")
    assert result.exit_code == 2
    assert "s3://lake/gas.parquet: expected an object that can be read; got no such bucket or object" in result.stderr


def test_batch_reads_panels_from_s3(run, fitted, panel, lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = panel.to_pandas("long")[["date", "symbol", "price"]]
    for name in ("a", "b"):
        table.assign(panel=name).to_parquet(f"{name}.parquet")
        lake.upload_file(f"{name}.parquet", "lake", f"panels/{name}.parquet")
    for source in ("s3://lake/panels/", "s3://lake/panels/a.parquet"):
        result = run("batch", fitted, "--data", source)
        assert result.exit_code == 0, result.stderr
        assert f"of {source}: " in result.stdout
    assert "nothing was changed" in run("batch", fitted, "--data", "s3://lake/panels/").stdout
    data.write(panel, "s3://lake/oil.parquet")
    assert "1 panel," in run("batch", fitted, "--data", "s3://lake/oil.parquet").stdout
    table.assign(panel="c", price=-1.0).to_parquet("bad.parquet")
    lake.upload_file("bad.parquet", "lake", "bad.parquet")
    assert run("batch", fitted, "--data", "s3://lake/bad.parquet").exit_code == 3
    with duckdb.connect("out/forecasts.duckdb") as connection:
        sources = {row[0] for row in connection.execute("SELECT source FROM runs").fetchall()}
    assert all("torchcommodity-" not in source for source in sources)
