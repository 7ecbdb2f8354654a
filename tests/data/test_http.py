"""FRED and EIA against a local server that replays their formats and failures."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from torchcommodity import data
from torchcommodity.data._download import MAX_PAUSE, _retry

CSV = "observation_date,DCOILWTICO\n2020-04-17,18.31\n2020-04-20,-36.98\n2020-04-21,.\n2020-04-22,\n2020-04-23,15.99\n"
HTML = "<!DOCTYPE html><html><head><title>Maintenance</title></head></html>"
KEY = "secret-key-1234"


def response(status=200, body=CSV, headers=(), cut=0, pause=0.0):
    return {"status": status, "body": body.encode(), "headers": dict(headers), "cut": cut, "pause": pause}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.server.requests.append((url.path, query))
        responses = self.server.responses
        response = responses.pop(0) if len(responses) > 1 else responses[0]
        response = response(url.path, query) if callable(response) else response
        time.sleep(response["pause"])
        self.send_response(response["status"])
        for name, value in {"Content-Length": len(response["body"]), **response["headers"]}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(response["body"][: len(response["body"]) - response["cut"]])

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that disconnected


@contextmanager
def serving(*responses):
    server = Server(("127.0.0.1", 0), Handler)
    server.responses, server.requests = list(responses), []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def http(tmp_path):
    return data.Http(cache=tmp_path / "cache", timeout=(1.0, 0.5), retries=2, backoff=0.01)


def test_fred_reads_the_published_format(http):
    with serving(response()) as (server, base):
        panel = data.fred("DCOILWTICO", base=base, http=http)
    assert server.requests == [("/graph/fredgraph.csv", {"id": "DCOILWTICO"})]
    assert panel.values[:, 0].tolist() == [18.31, -36.98, 15.99]
    assert [str(day) for day in panel.dates] == ["2020-04-17", "2020-04-20", "2020-04-23"]
    assert [(f.kind, f.symbol, f.date, f.count) for f in panel.findings] == [
        ("nonpositive", "DCOILWTICO", "2020-04-20", 1),
        ("short history", "DCOILWTICO", "", 1),
        ("no trading", "DCOILWTICO", "2020-04-21", 2),
    ]
    record = panel.provenance[0]
    assert record.location == f"{base}/graph/fredgraph.csv?id=DCOILWTICO"
    assert (record.series, len(record.sha256), record.retrieved[-1]) == ("DCOILWTICO", 64, "Z")


def test_fred_joins_series_by_date(http):
    other = "observation_date,DHHNGSP\n2020-04-17,1.5\n2020-04-21,1.7\n"
    with serving(response(), response(body=other)) as (_, base):
        panel = data.fred(["DCOILWTICO", "DHHNGSP"], base=base, http=http)
    assert panel.to_pandas().to_csv() == (
        "date,DCOILWTICO,DHHNGSP\n2020-04-17,18.31,1.5\n2020-04-20,-36.98,\n2020-04-21,,1.7\n2020-04-23,15.99,\n"
    )


RECOVERS = {
    "busy": (response(429, "slow down", {"Retry-After": "0"}), response()),
    "server_error": (response(500, "oops"), response()),
    "twice": (response(503, "oops"), response(502, HTML), response()),
    "slow": (response(pause=1.0), response()),
    "cut": (response(cut=20), response()),
    "slow_then_cut": (response(pause=1.0), response(cut=20), response()),
}


@pytest.mark.parametrize("name", RECOVERS)
def test_fred_retries_after_a_temporary_failure(name, http):
    with serving(*RECOVERS[name]) as (server, base):
        assert len(data.fred("DCOILWTICO", base=base, http=http)) == 3
        assert len(server.requests) == len(RECOVERS[name])


# name: (the response, words of the message, number of requests)
FAILS = {
    "always_busy": (response(429, "slow down", {"Retry-After": "0"}), ["429", "slow down"], 3),
    "down": (response(500, "oops"), ["500", "oops"], 3),
    "silent": (response(pause=1.0), ["expected a response", "Timeout"], 3),
    "always_cut": (response(cut=20), ["3 incomplete ones"], 3),
    "unknown_series": (response(404, HTML), ["404"], 1),
    "forbidden": (response(403, "no"), ["403"], 1),
    "html": (response(body=HTML), ["line 1", "HTML"], 1),
    "other_series": (response(body="observation_date,OTHER\n2020-04-17,1\n"), ["DCOILWTICO", "OTHER"], 1),
    "text_in_number": (response(body="observation_date,DCOILWTICO\n2020-04-17,x\n"), ["line 2", "'x'"], 1),
    "no_rows": (response(body="observation_date,DCOILWTICO\n"), ["rows"], 1),
    "no_prices": (response(body="observation_date,DCOILWTICO\n2020-04-17,.\n"), ["got none in 1"], 1),
    "empty": (response(body=""), ["blank lines"], 1),
    "binary": (response(body="\0\1\2"), ["NUL"], 1),
}


@pytest.mark.parametrize("name", FAILS)
def test_fred_raises_after_a_lasting_failure_and_caches_nothing(name, http):
    failure, words, requests = FAILS[name]
    with serving(failure) as (server, base):
        with pytest.raises(data.DataError) as error:
            data.fred("DCOILWTICO", base=base, http=http)
        assert len(server.requests) == requests
    for word in [base, *words]:
        assert word in str(error.value)
    cached = list(http.cache.iterdir()) if http.cache.exists() else []
    assert all(path.suffix == ".response" for path in cached)
    assert len(cached) == (name == "no_prices")  # well-formed, so it is cached; rejected whenever it is read


def test_fred_raises_without_a_server(http):
    with pytest.raises(data.DataError, match="NewConnectionError"):
        data.fred("DCOILWTICO", base="http://127.0.0.1:9", http=http)


def test_fred_raises_for_an_invalid_address(http):
    with pytest.raises(data.DataError, match=r"InvalidSchema|MissingSchema"):
        data.fred("DCOILWTICO", base="nowhere", http=http)


def test_fred_stops_at_the_deadline(tmp_path):
    http = data.Http(cache=tmp_path, deadline=-1.0, retries=0)
    with serving(response()) as (_, base), pytest.raises(data.DataError, match="complete response in"):
        data.fred("DCOILWTICO", base=base, http=http)


def test_retry_after_is_capped():
    from urllib3 import HTTPResponse

    response = HTTPResponse(status=429, headers={"Retry-After": "86400"})
    assert _retry(data.Http()).get_retry_after(response) == MAX_PAUSE


def test_cache_is_used_up_to_its_maximum_age(http):
    with serving(response()) as (server, base):
        first = data.fred("DCOILWTICO", base=base, http=http)
        cached = data.fred("DCOILWTICO", base=base, http=http)
        assert len(server.requests) == 1
        assert cached.equals(first)  # the time of retrieval and the sha256 too
        no_cache = data.Http(cache=http.cache, max_age=0)
        data.fred("DCOILWTICO", base=base, http=no_cache)
        assert len(server.requests) == 2


def test_expired_copy_is_used_and_reported_when_the_publisher_is_down(http):
    always_request = data.Http(cache=http.cache, max_age=0, retries=0)
    with serving(response(), response(500, "oops")) as (_, base):
        fresh = data.fred("DCOILWTICO", base=base, http=always_request)
        expired = data.fred("DCOILWTICO", base=base, http=always_request)
    assert expired.equals(fresh)
    assert [f.kind for f in expired.findings] == ["cached copy", *(f.kind for f in fresh.findings)]


@pytest.mark.parametrize("damage", ["cut", "changed", "garbage", "future"])
def test_damaged_copy_is_requested_again(damage, http):
    with serving(response()) as (server, base):
        data.fred("DCOILWTICO", base=base, http=http)
        (path,) = http.cache.iterdir()
        body = path.read_bytes()
        damaged = {
            "cut": body[:-5],
            "changed": body.replace(b"18.31", b"18.32"),
            "garbage": b"\0garbage",
            "future": body.replace(b'"retrieved": "2', b'"retrieved": "9'),
        }
        path.write_bytes(damaged[damage])
        assert data.fred("DCOILWTICO", base=base, http=http).values[0, 0].item() == 18.31
        assert len(server.requests) == 2


def test_cache_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        serving(response()) as (_, base),
        pytest.warns(UserWarning, match="file.cache: the response was not cached: Not a directory"),
    ):
        data.fred("DCOILWTICO", base=base, http=data.Http(cache=tmp_path / "file" / "cache"))


def records(count, first=0, unit="$/BBL"):
    days = [f"2020-{1 + day // 28:02d}-{1 + day % 28:02d}" for day in range(first, first + count)]
    return [
        {"period": day, "duoarea": "YCUOK", "series": "RWTC", "value": f"{day[-2:]}.5", "units": unit} for day in days
    ]


def eia_body(data, total=None, **fields):
    content = {"total": str(len(data) if total is None else total), "dateFormat": "YYYY-MM-DD", "data": data}
    return json.dumps({"response": content, "request": {"command": "/v2/seriesid/"}, "apiVersion": "2.1.8", **fields})


def test_eia_reads_the_published_format(http, monkeypatch):
    monkeypatch.setenv("EIA_API_KEY", KEY)
    page = [*records(3)[::-1], {"period": "2020-04-20", "series": "RWTC", "value": -36.98, "units": "$/BBL"}][::-1]
    with serving(response(body=eia_body(page))) as (server, base):
        monkeypatch.setenv("TORCHCOMMODITY_EIA_URL", base + "/")
        panel = data.read("eia:PET.RWTC.D")
    assert server.requests == [("/v2/seriesid/PET.RWTC.D", {"offset": "0", "length": "5000", "api_key": KEY})]
    assert panel.values[:, 0].tolist() == [1.5, 2.5, 3.5, -36.98]
    assert panel.units == ("$/BBL",)
    assert panel.provenance[0].license.startswith("public domain")
    assert "nonpositive" in [f.kind for f in panel.findings]


def test_eia_joins_pages_newest_first(http):
    newest_first = records(300)[::-1]

    def page(path, query):
        first = int(query["offset"])
        return response(body=eia_body(newest_first[first : first + 120], total=300))

    with serving(page) as (server, base):
        panel = data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    assert [query["offset"] for _, query in server.requests] == ["0", "120", "240"]
    assert len(panel) == 300
    assert not [f for f in panel.findings if f.kind in ("unsorted", "duplicate")]
    assert panel.provenance[0].sha256.count("+") == 2


def test_eia_dates_months_on_their_first_day(http):
    page = [
        {"period": "2020-01", "value": None},
        {"period": "2020-02", "value": 2},
        {"period": "2020-03", "value": "3"},
    ]
    with serving(response(body=eia_body(page))) as (_, base):
        panel = data.eia("PET.RWTC.M", key=KEY, base=base, http=http)
    assert [str(day) for day in panel.dates] == ["2020-02-01", "2020-03-01"]
    assert panel.values[:, 0].tolist() == [2.0, 3.0]


ERROR = '{"error": {"code": "API_KEY_INVALID", "message": "An invalid api_key was supplied: KEY"}}'.replace(
    ": KEY", f": {KEY}"
)
EIA_FAILS = {
    "bad_key": (response(403, ERROR), ["403", "API_KEY_INVALID", "***"]),
    "error_in_200": (response(body='{"error": "no such series", "code": 404}'), ["no such series"]),
    "html": (response(body=HTML), ["JSON"]),
    "cut_json": (response(body=eia_body(records(3))[:-40]), ["JSON"]),
    "no_data": (response(body='{"response": {}}'), ["response.data"]),
    "list": (response(body="[1, 2]"), ["response.data"]),
    "no_records": (response(body=eia_body([])), ["got 0"]),
    "too_few": (response(body=eia_body([], total=7)), ["expected 7", "got 0"]),
    "bad_total": (response(body=eia_body(records(1), total="many")), ["'many'"]),
    "text": (response(body=eia_body([{"period": "2020-01-01", "value": "W"}])), ["record 1", "'W'"]),
    "no_value": (response(body=eia_body([{"period": "2020-01-01"}])), ["record 1", "no field 'value'"]),
    "list_value": (response(body=eia_body([{"period": "2020-01-01", "value": [1]}])), ["record 1", "[1]"]),
    "no_period": (response(body=eia_body([{"value": 1}])), ["record 1", "got ''"]),
    "infinite": (response(body='{"response": {"data": [{"period": "2020-01-01", "value": Infinity}]}}'), ["JSON"]),
    "two_units": (response(body=eia_body(records(1) + records(1, 1, "EUR"))), ["unit", "EUR"]),
    "conflict": (response(body=eia_body([*records(2), {**records(1)[0], "value": 9}])), ["2020-01-01", "9"]),
}


@pytest.mark.parametrize("name", EIA_FAILS)
def test_eia_errors_never_show_the_key(name, http):
    failure, words = EIA_FAILS[name]
    with serving(failure) as (_, base), pytest.raises(data.DataError) as error:
        data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    for word in words:
        assert word in str(error.value)
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None


def test_eia_key_is_not_written_to_provenance_or_cache(http):
    with serving(response(body=eia_body(records(3)))) as (_, base):
        panel = data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    assert KEY not in str(panel.sources())
    assert all(KEY.encode() not in path.read_bytes() for path in http.cache.iterdir())


def test_eia_raises_without_a_key(http):
    with pytest.raises(data.DataError, match="EIA_API_KEY"):
        data.eia("PET.RWTC.D", http=http)


@pytest.mark.parametrize("ids", ["", "A,A", "A B", "../x", "A?b=c", "A,,B"])
def test_fred_rejects_bad_ids(ids):
    with pytest.raises(data.DataError, match="series ids"):
        data.fred(ids)
