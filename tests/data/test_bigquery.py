"""BigQuery by Google's client, in a dialogue with a local server after the reference of its REST API."""

import json
import sys

import bigquery_server
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from torchcommodity import data


@pytest.fixture(scope="module")
def private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, layout = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, layout, serialization.NoEncryption()).decode()


@pytest.fixture
def server(monkeypatch, tmp_path, private_key):
    with bigquery_server.serving_bigquery() as server:
        account = {"type": "service_account", "project_id": "acme", "private_key_id": "1", "private_key": private_key}
        account |= {"client_email": "quant@acme.iam", "client_id": "1", "token_uri": f"{server.address}/token"}
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.address)
        yield server


@pytest.fixture(scope="module")
def panel():
    return data.embedded(["WTI", "BRENT"]).between("2015-01-01", "2020-12-31")


def test_write_then_read(server, panel):
    data.write(panel, "bq:acme.oil.spot")
    (load,) = server.loads
    assert load["destinationTable"] == {"projectId": "acme", "datasetId": "oil", "tableId": "spot"}
    assert (load["sourceFormat"], load["writeDisposition"]) == ("PARQUET", "WRITE_TRUNCATE")
    assert server.tables["acme.oil.spot"].num_rows > bigquery_server.PAGE, "the rows come in several pages"
    assert data.read("bq:acme.oil.spot").equals(panel)
    assert set(server.tokens) == {"Bearer ya29.token"}


def test_write_replaces_a_table(server, panel):
    data.write(panel, "bq:acme.oil.spot")
    data.write(panel["WTI"], "bq:acme.oil.spot")
    assert data.read("bq:acme.oil.spot", ["WTI"]).symbols == ("WTI",)


def test_read_a_table_of_others(server):
    columns = {"ticker": pa.array(["WTI"]), "date": pa.array([18372], pa.date32()), "settle": pa.array([-37.63])}
    server.tables["acme.oil.futures"] = pa.table(columns)
    loaded = data.read("bq:acme.oil.futures")
    assert (loaded.symbols, loaded.values.tolist()) == (("WTI",), [[-37.63]])
    assert loaded.provenance[0].location == "bq:acme.oil.futures"


def test_failed_job_is_an_error_in_words(server, panel):
    server.load_error = {"reason": "invalid", "message": "Quota exceeded"}
    with pytest.raises(data.DataError, match=r"bq:acme.oil.spot: expected a table of BigQuery; got .*Quota exceeded"):
        data.write(panel, "bq:acme.oil.spot")
    assert server.tables == {}


def test_missing_table_and_dataset(server, panel):
    with pytest.raises(data.DataError, match=r"bq:acme.oil.gas: expected a table of BigQuery; got 404"):
        data.read("bq:acme.oil.gas")
    with pytest.raises(data.DataError, match=r"bq:acme.gas.spot: expected a table of BigQuery; got 404"):
        data.write(panel, "bq:acme.gas.spot")


def test_size_limit(server, panel, monkeypatch):
    data.write(panel, "bq:acme.oil.spot")
    monkeypatch.setattr("torchcommodity.data._sources.tables.open_table.MAX_BYTES", 100)
    with pytest.raises(data.DataError, match="expected at most 100 bytes"):
        data.read("bq:acme.oil.spot")


def test_no_credentials(server, panel, monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(data.DataError, match=r"bq:acme.oil.spot: expected .*; got File .* was not found"):
        data.write(panel, "bq:acme.oil.spot")


@pytest.mark.parametrize(
    "name", ["bq:spot", "bq:oil.spot", "bq:acme.oil.spot; DROP", "bq:acme.oil.sp`ot", "bq:a/b.c.d"]
)
def test_names_are_checked(panel, name):
    for call in (lambda: data.write(panel, name), lambda: data.read(name)):
        with pytest.raises(data.DataError, match=r"expected bq:PROJECT.DATASET.TABLE; got another form"):
            call()


def test_without_the_extra(panel, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.cloud.bigquery", None)
    monkeypatch.delattr("google.cloud.bigquery", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'torchcommodity\[bigquery\]'"):
        data.write(panel, "bq:acme.oil.spot")
