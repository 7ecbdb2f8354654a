"""Objects on Google Cloud Storage, against a local emulator.

gcsfs asks Google by gRPC for the type of a bucket, which the emulator does not answer: the tests take the file system
of gcsfs for ordinary buckets, to which it falls back.
"""

import fsspec
import pytest
from fsspec.registry import _registry

from torchcommodity import data


@pytest.fixture(scope="module")
def emulator():
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="prices")
    server.start()
    yield f"http://127.0.0.1:{server._api._httpd.server_address[1]}"
    server.stop()


@pytest.fixture(autouse=True)
def gcs(emulator, monkeypatch):
    from gcsfs.core import GCSFileSystem

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
    monkeypatch.setitem(_registry, "gs", GCSFileSystem)
    GCSFileSystem.clear_instance_cache()
    yield
    GCSFileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def panel():
    return data.embedded(["WTI", "BRENT"]).between("2019-01-01", "2020-12-31")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv.gz"])
def test_write_then_read(panel, ending):
    data.write(panel, f"gs://prices/oil/spot{ending}")
    loaded = data.read(f"gs://prices/oil/spot{ending}")
    assert loaded.symbols == panel.symbols
    assert loaded.units == panel.units
    assert loaded.equals(panel) == (".csv" not in ending)


def test_write_replaces_an_object(panel):
    data.write(panel, "gs://prices/oil.parquet")
    data.write(panel["WTI"], "gs://prices/oil.parquet")
    assert data.read("gs://prices/oil.parquet").symbols == ("WTI",)


def test_missing_bucket_and_object(panel):
    for address in ("gs://nowhere/oil.parquet", "gs://prices/gas.parquet"):
        with pytest.raises(data.DataError, match=f"{address}: expected .* got no such bucket or object"):
            data.read(address)
    with pytest.raises(data.DataError, match=r"gs://nowhere/oil.parquet: expected .* got no such bucket or object"):
        data.write(panel, "gs://nowhere/oil.parquet")
