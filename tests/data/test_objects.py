"""Objects on a local S3 server: every format, every failure, nothing half-written and no secret in a message."""

import gzip
import os

import boto3
import numpy as np
import object_stores
import pytest
import s3fs
from publisher_server import response, serving

from torchcommodity import data

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"  # the example of Amazon's own documentation
ENDINGS = (".parquet", ".feather", ".arrow", ".csv", ".csv.gz", ".csv.zst")


@pytest.fixture(scope="module")
def server():
    with object_stores.serving_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def s3(server, monkeypatch, tmp_path):
    """A client of the server with the bucket `prices`, and the environment of a user of it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    environment = {"ENDPOINT_URL": server.address, "ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "SECRET_ACCESS_KEY": SECRET}
    environment |= {"DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true", "MAX_ATTEMPTS": "3"}
    environment |= {"CONFIG_FILE": str(tmp_path / "none"), "SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    for name, value in environment.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3fs.S3FileSystem.clear_instance_cache()
    server.faults.clear()
    server.requests.clear()
    client = boto3.client("s3")
    client.create_bucket(Bucket="prices")
    yield client
    server.faults.clear()
    object_stores.wait_for_uploads()
    for item in client.list_objects_v2(Bucket="prices").get("Contents", []):
        client.delete_object(Bucket="prices", Key=item["Key"])
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def panel():
    return data.embedded(["WTI", "BRENT"]).between("2019-01-01", "2020-12-31")


def keys(s3):
    return [item["Key"] for item in s3.list_objects_v2(Bucket="prices").get("Contents", [])]


def same_prices(panel, other):
    return np.array_equal(panel.values.plain().numpy(), other.values.plain().numpy(), equal_nan=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_write_then_read(s3, panel, ending):
    address = f"s3://prices/oil/spot 1{ending}"
    data.write(panel, address)
    assert keys(s3) == [f"oil/spot 1{ending}"]
    loaded = data.read(address)
    assert same_prices(loaded, panel)
    assert loaded.units == panel.units
    assert loaded.equals(panel) == (".csv" not in ending)


def test_provenance_of_an_object_is_its_address(s3):
    s3.put_object(Bucket="prices", Key="wti.csv", Body=gzip.compress(b"date,WTI\n2020-04-20,-37.63\n"))
    loaded = data.read("s3://prices/wti.csv")
    assert loaded.provenance[0].location == "s3://prices/wti.csv"
    assert len(loaded.provenance[0].sha256) == 64
    assert "compressed without ending" in [finding.kind for finding in loaded.findings]


def test_read_database_and_sheet_of_an_object(s3, panel, tmp_path):
    data.write(panel, f"{tmp_path}/prices.duckdb:spot")
    s3.put_object(Bucket="prices", Key="prices.duckdb", Body=(tmp_path / "prices.duckdb").read_bytes())
    assert data.read("s3://prices/prices.duckdb:spot").equals(panel)


def test_read_folder_and_pattern_of_objects(s3, panel):
    data.write(panel.between("2019-01-01", "2019-12-31"), "s3://prices/oil/2019.parquet", layout="wide")
    data.write(panel.between("2020-01-01", "2020-12-31"), "s3://prices/oil/2020.parquet", layout="wide")
    for address in ("s3://prices/oil/", "s3://prices/oil/20*.parquet"):
        assert same_prices(data.read(address), panel)
    with pytest.raises(
        data.DataError, match=r"s3://prices/gas/: expected Parquet objects; got no such bucket or object"
    ):
        data.read("s3://prices/gas/")


def test_write_replaces_an_object(s3, panel):
    data.write(panel, "s3://prices/oil.parquet")
    data.write(panel["WTI"], "s3://prices/oil.parquet")
    assert data.read("s3://prices/oil.parquet").symbols == ("WTI",)


def test_local_copy_of_objects(s3, panel):
    for year in ("2019", "2020"):
        data.write(panel.between(f"{year}-01-01", f"{year}-12-31"), f"s3://prices/lake/year={year}/spot.parquet")
    with data.local_copy("s3://prices/lake/") as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["year=2019", "year=2020"]
        assert len(data.read(folder)) == len(panel)
    assert not folder.exists()
    with data.local_copy("s3://prices/lake/year=2019/spot.parquet") as path:
        assert path.name == "spot.parquet"
        assert data.read(path).symbols == panel.symbols
    assert not path.exists()


def test_missing_bucket_and_object(panel):
    for address in ("s3://nowhere/oil.parquet", "s3://prices/gas.parquet"):
        with pytest.raises(data.DataError, match=f"{address}: expected .* got no such bucket or object"):
            data.read(address)
    with pytest.raises(data.DataError, match=r"s3://nowhere/oil.parquet: expected .* got no such bucket or object"):
        data.write(panel, "s3://nowhere/oil.parquet")


@pytest.mark.parametrize("address", ["s3://prices", "s3:///oil.parquet", "s3://prices/", "s3://a:b@prices/oil.parquet"])
def test_addresses_are_checked(panel, address):
    with pytest.raises(data.DataError, match="expected"):
        data.write(panel, address)


def test_no_credentials(panel, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(data.DataError, match="got no credentials; set AWS_PROFILE"):
        data.read("s3://prices/oil.parquet")
    with pytest.raises(data.DataError, match="got no credentials; set AWS_PROFILE"):
        data.write(panel, "s3://prices/oil.parquet")


def test_no_permission(server, panel):
    server.faults += [("PUT", 403)] * 10 + [("HEAD", 403)] * 10 + [("GET", 403)] * 10
    for call in (lambda: data.write(panel, "s3://prices/oil.parquet"), lambda: data.read("s3://prices/oil.parquet")):
        with pytest.raises(data.DataError, match="no permission") as caught:
            call()
        assert SECRET not in str(caught.value)


def test_server_busy_then_well(server, s3, panel):
    server.faults += [("PUT", 503)] * 2
    data.write(panel, "s3://prices/oil.parquet")
    server.faults += [("HEAD", 503), ("GET", 503)]
    assert data.read("s3://prices/oil.parquet").equals(panel)
    assert not server.faults


def test_connection_lost_inside_a_write_leaves_no_object(server, s3, panel):
    server.faults += [("PUT", 0)] * 50
    with pytest.raises(data.DataError, match=r"s3://prices/oil.parquet: expected an object that can be written"):
        data.write(panel, "s3://prices/oil.parquet")
    server.faults.clear()
    assert keys(s3) == []


def test_connection_lost_inside_a_write_leaves_the_old_object(server, s3, panel):
    data.write(panel["WTI"], "s3://prices/oil.parquet")
    server.faults += [("PUT", 0)] * 50
    with pytest.raises(data.DataError):
        data.write(panel, "s3://prices/oil.parquet")
    server.faults.clear()
    assert data.read("s3://prices/oil.parquet").symbols == ("WTI",)


def test_connection_lost_between_parts_leaves_no_object(server, s3):
    """Objects of 100 MB and more are uploaded in parts."""
    from torchcommodity.data._sources.locations import write_object

    server.faults += [("PUT", 0)] * 50
    with pytest.raises(data.DataError):
        write_object("s3://prices/large.bin", bytes(101 * 2**20))
    assert any(command == "POST" and "uploads" in path for command, path in server.requests)
    server.faults.clear()
    assert keys(s3) == []
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="prices")


def test_no_server(panel, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(data.DataError, match="expected an object that can be read") as caught:
        data.read("s3://prices/oil.parquet")
    assert SECRET not in str(caught.value)


def test_size_limit(s3, panel, monkeypatch):
    data.write(panel, "s3://prices/oil.parquet")
    monkeypatch.setattr("torchcommodity.data._sources.tables.open_table.MAX_BYTES", 100)
    with pytest.raises(data.DataError, match=r"s3://prices/oil.parquet: expected at most 100 bytes"):
        data.read("s3://prices/oil.parquet")


def test_read_from_a_web_server(panel, tmp_path):
    with serving(response(body="date,WTI\n2020-04-17,18.27\n2020-04-20,-37.63\n")) as (_, address):
        signed = f"{address.replace('://', '://user:word@')}/wti.csv?X-Amz-Signature=0123456789abcdef"
        loaded = data.read(signed)
    assert loaded.provenance[0].location == f"{address}/wti.csv"
    assert loaded.values.tolist() == [[18.27], [-37.63]]
    with (
        serving(response(404, "no such file 0123456789abcdef")) as (_, address),
        pytest.raises(data.DataError, match="expected status 200; got 404") as caught,
    ):
        data.read(f"{address}/wti.csv?X-Amz-Signature=0123456789abcdef")
    assert "0123456789abcdef" not in str(caught.value)
    with pytest.raises(data.DataError, match="got a web address"):
        data.write(panel, "http://127.0.0.1:9/wti.csv")
