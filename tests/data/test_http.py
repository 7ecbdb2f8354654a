"""FRED and EIA against a small server on loopback that replays their formats, their moods and their failures."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from torchcommodity import data
from torchcommodity.data._http import LONGEST_PAUSE

CSV = "observation_date,DCOILWTICO\n2020-04-17,18.31\n2020-04-20,-36.98\n2020-04-21,.\n2020-04-22,\n2020-04-23,15.99\n"
HTML = "<!DOCTYPE html><html><head><title>Maintenance</title></head></html>"
KEY = "secret-key-1234"


def reply(status=200, body=CSV, headers=(), cut=0, pause=0.0):
    return {"status": status, "body": body.encode(), "headers": dict(headers), "cut": cut, "pause": pause}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(asked.query).items()}
        self.server.asked.append((asked.path, query))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer = answer(asked.path, query) if callable(answer) else answer
        time.sleep(answer["pause"])
        self.send_response(answer["status"])
        for name, value in {"Content-Length": len(answer["body"]), **answer["headers"]}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(answer["body"][: len(answer["body"]) - answer["cut"]])

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that gave up waiting


@contextmanager
def serving(*answers):
    server = Server(("127.0.0.1", 0), Handler)
    server.answers, server.asked = list(answers), []
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


def test_fred_as_published(http):
    with serving(reply()) as (server, base):
        panel = data.fred("DCOILWTICO", base=base, http=http)
    assert server.asked == [("/graph/fredgraph.csv", {"id": "DCOILWTICO"})]
    assert panel.values[:, 0].tolist() == [18.31, -36.98, 15.99]
    assert [str(day) for day in panel.dates] == ["2020-04-17", "2020-04-20", "2020-04-23"]
    assert [(f.kind, f.symbol, f.date, f.count) for f in panel.findings] == [
        ("nonpositive", "DCOILWTICO", "2020-04-20", 1),
        ("no trading", "DCOILWTICO", "2020-04-21", 2),
    ]
    record = panel.provenance[0]
    assert record.location == f"{base}/graph/fredgraph.csv?id=DCOILWTICO"
    assert (record.series, len(record.sha256), record.retrieved[-1]) == ("DCOILWTICO", 64, "Z")


def test_fred_series_are_joined(http):
    other = "observation_date,DHHNGSP\n2020-04-17,1.5\n2020-04-21,1.7\n"
    with serving(reply(), reply(body=other)) as (_, base):
        panel = data.fred(["DCOILWTICO", "DHHNGSP"], base=base, http=http)
    assert panel.to_pandas().to_csv() == (
        "date,DCOILWTICO,DHHNGSP\n2020-04-17,18.31,1.5\n2020-04-20,-36.98,\n2020-04-21,,1.7\n2020-04-23,15.99,\n"
    )


RECOVERS = {
    "busy": (reply(429, "slow down", {"Retry-After": "0"}), reply()),
    "server_error": (reply(500, "oops"), reply()),
    "twice": (reply(503, "oops"), reply(502, HTML), reply()),
    "slow": (reply(pause=1.0), reply()),
    "cut": (reply(cut=20), reply()),
    "slow_then_cut": (reply(pause=1.0), reply(cut=20), reply()),
}


@pytest.mark.parametrize("name", RECOVERS)
def test_a_passing_failure_is_tried_again(name, http):
    with serving(*RECOVERS[name]) as (server, base):
        assert len(data.fred("DCOILWTICO", base=base, http=http)) == 3
        assert len(server.asked) == len(RECOVERS[name])


# name: (the answer, words of the message, how often it is asked for)
FAILS = {
    "busy_for_ever": (reply(429, "slow down", {"Retry-After": "0"}), ["429", "slow down"], 3),
    "down": (reply(500, "oops"), ["500", "oops"], 3),
    "silent": (reply(pause=1.0), ["expected an answer", "Timeout"], 3),
    "always_cut": (reply(cut=20), ["cut short 3 times"], 3),
    "unknown_series": (reply(404, HTML), ["404"], 1),
    "forbidden": (reply(403, "no"), ["403"], 1),
    "html": (reply(body=HTML), ["line 1", "HTML"], 1),
    "other_series": (reply(body="observation_date,OTHER\n2020-04-17,1\n"), ["DCOILWTICO", "OTHER"], 1),
    "text_in_number": (reply(body="observation_date,DCOILWTICO\n2020-04-17,x\n"), ["line 2", "'x'"], 1),
    "no_rows": (reply(body="observation_date,DCOILWTICO\n"), ["rows"], 1),
    "no_prices": (reply(body="observation_date,DCOILWTICO\n2020-04-17,.\n"), ["got none in 1"], 1),
    "empty": (reply(body=""), ["blank lines"], 1),
    "binary": (reply(body="\0\1\2"), ["NUL"], 1),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_lasting_failure_is_refused_and_nothing_is_kept(name, http):
    answer, words, asked = FAILS[name]
    with serving(answer) as (server, base):
        with pytest.raises(data.DataError) as refusal:
            data.fred("DCOILWTICO", base=base, http=http)
        assert len(server.asked) == asked
    for word in [base, *words]:
        assert word in str(refusal.value)
    kept = list(http.cache.iterdir()) if http.cache.exists() else []
    assert all(path.suffix == ".reply" for path in kept)
    assert len(kept) == (name == "no_prices")  # well-formed, so it may be kept; refused each time it is read


def test_nobody_listens(http):
    with pytest.raises(data.DataError, match="NewConnectionError"):
        data.fred("DCOILWTICO", base="http://127.0.0.1:9", http=http)


def test_no_address_at_all(http):
    with pytest.raises(data.DataError, match=r"InvalidSchema|MissingSchema"):
        data.fred("DCOILWTICO", base="nowhere", http=http)


def test_drip_is_cut_at_the_deadline(tmp_path):
    http = data.Http(cache=tmp_path, deadline=-1.0, retries=0)
    with serving(reply()) as (_, base), pytest.raises(data.DataError, match="whole answer in"):
        data.fred("DCOILWTICO", base=base, http=http)


def test_retry_after_is_bounded():
    from urllib3 import HTTPResponse

    from torchcommodity.data._http import _retry

    response = HTTPResponse(status=429, headers={"Retry-After": "86400"})
    assert _retry(data.Http()).get_retry_after(response) == LONGEST_PAUSE


def test_cache_of_stated_age(http):
    with serving(reply()) as (server, base):
        first = data.fred("DCOILWTICO", base=base, http=http)
        again = data.fred("DCOILWTICO", base=base, http=http)
        assert len(server.asked) == 1
        assert again.equals(first)  # the time of retrieval and the sha256 too
        fresh = data.Http(cache=http.cache, max_age=0)
        data.fred("DCOILWTICO", base=base, http=fresh)
        assert len(server.asked) == 2


def test_old_copy_stands_in_and_is_reported(http):
    asks_always = data.Http(cache=http.cache, max_age=0, retries=0)
    with serving(reply(), reply(500, "oops")) as (_, base):
        fresh = data.fred("DCOILWTICO", base=base, http=asks_always)
        old = data.fred("DCOILWTICO", base=base, http=asks_always)
    assert old.equals(fresh)
    assert [f.kind for f in old.findings] == ["old copy", *(f.kind for f in fresh.findings)]


@pytest.mark.parametrize("damage", ["cut", "changed", "garbage", "future"])
def test_a_damaged_copy_is_asked_for_again(damage, http):
    with serving(reply()) as (server, base):
        data.fred("DCOILWTICO", base=base, http=http)
        (kept,) = http.cache.iterdir()
        body = kept.read_bytes()
        changed = {
            "cut": body[:-5],
            "changed": body.replace(b"18.31", b"18.32"),
            "garbage": b"\0garbage",
            "future": body.replace(b'"retrieved": "2', b'"retrieved": "9'),
        }
        kept.write_bytes(changed[damage])
        assert data.fred("DCOILWTICO", base=base, http=http).values[0, 0].item() == 18.31
        assert len(server.asked) == 2


def test_a_cache_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        serving(reply()) as (_, base),
        pytest.warns(UserWarning, match="file.cache: the response was not cached: Not a directory"),
    ):
        data.fred("DCOILWTICO", base=base, http=data.Http(cache=tmp_path / "file" / "cache"))


def records(count, first=0, unit="$/BBL"):
    days = [f"2020-{1 + day // 28:02d}-{1 + day % 28:02d}" for day in range(first, first + count)]
    return [
        {"period": day, "duoarea": "YCUOK", "series": "RWTC", "value": f"{day[-2:]}.5", "units": unit} for day in days
    ]


def eia_answer(data, total=None, **fields):
    response = {"total": str(len(data) if total is None else total), "dateFormat": "YYYY-MM-DD", "data": data}
    return json.dumps({"response": response, "request": {"command": "/v2/seriesid/"}, "apiVersion": "2.1.8", **fields})


def test_eia_as_published(http, monkeypatch):
    monkeypatch.setenv("EIA_API_KEY", KEY)
    page = [*records(3)[::-1], {"period": "2020-04-20", "series": "RWTC", "value": -36.98, "units": "$/BBL"}][::-1]
    with serving(reply(body=eia_answer(page))) as (server, base):
        monkeypatch.setenv("TORCHCOMMODITY_EIA_URL", base + "/")
        panel = data.read("eia:PET.RWTC.D")
    assert server.asked == [("/v2/seriesid/PET.RWTC.D", {"offset": "0", "length": "5000", "api_key": KEY})]
    assert panel.values[:, 0].tolist() == [1.5, 2.5, 3.5, -36.98]
    assert panel.units == ("$/BBL",)
    assert panel.provenance[0].license.startswith("public domain")
    assert "nonpositive" in [f.kind for f in panel.findings]


def test_eia_pages_newest_first(http):
    everything = records(300)[::-1]

    def page(path, query):
        first = int(query["offset"])
        return reply(body=eia_answer(everything[first : first + 120], total=300))

    with serving(page) as (server, base):
        panel = data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    assert [query["offset"] for _, query in server.asked] == ["0", "120", "240"]
    assert len(panel) == 300
    assert not [f for f in panel.findings if f.kind in ("unsorted", "duplicate")]
    assert panel.provenance[0].sha256.count("+") == 2


def test_eia_months_and_missing_values(http):
    page = [
        {"period": "2020-01", "value": None},
        {"period": "2020-02", "value": 2},
        {"period": "2020-03", "value": "3"},
    ]
    with serving(reply(body=eia_answer(page))) as (_, base):
        panel = data.eia("PET.RWTC.M", key=KEY, base=base, http=http)
    assert [str(day) for day in panel.dates] == ["2020-02-01", "2020-03-01"]
    assert panel.values[:, 0].tolist() == [2.0, 3.0]


ERROR = '{"error": {"code": "API_KEY_INVALID", "message": "An invalid api_key was supplied: KEY"}}'.replace(
    ": KEY", f": {KEY}"
)
EIA_FAILS = {
    "bad_key": (reply(403, ERROR), ["403", "API_KEY_INVALID", "***"]),
    "error_in_200": (reply(body='{"error": "no such series", "code": 404}'), ["no such series"]),
    "html": (reply(body=HTML), ["JSON"]),
    "cut_json": (reply(body=eia_answer(records(3))[:-40]), ["JSON"]),
    "no_data": (reply(body='{"response": {}}'), ["response.data"]),
    "list": (reply(body="[1, 2]"), ["response.data"]),
    "no_records": (reply(body=eia_answer([])), ["got 0"]),
    "too_few": (reply(body=eia_answer([], total=7)), ["expected 7", "got 0"]),
    "bad_total": (reply(body=eia_answer(records(1), total="many")), ["'many'"]),
    "text": (reply(body=eia_answer([{"period": "2020-01-01", "value": "W"}])), ["record 1", "'W'"]),
    "no_value": (reply(body=eia_answer([{"period": "2020-01-01"}])), ["record 1", "no field 'value'"]),
    "list_value": (reply(body=eia_answer([{"period": "2020-01-01", "value": [1]}])), ["record 1", "[1]"]),
    "no_period": (reply(body=eia_answer([{"value": 1}])), ["record 1", "got ''"]),
    "infinite": (reply(body='{"response": {"data": [{"period": "2020-01-01", "value": Infinity}]}}'), ["JSON"]),
    "two_units": (reply(body=eia_answer(records(1) + records(1, 1, "EUR"))), ["unit", "EUR"]),
    "conflict": (reply(body=eia_answer([*records(2), {**records(1)[0], "value": 9}])), ["2020-01-01", "9"]),
}


@pytest.mark.parametrize("name", EIA_FAILS)
def test_eia_refusals_never_show_the_key(name, http):
    answer, words = EIA_FAILS[name]
    with serving(answer) as (_, base), pytest.raises(data.DataError) as refusal:
        data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    for word in words:
        assert word in str(refusal.value)
    assert KEY not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_the_key_is_written_nowhere(http):
    with serving(reply(body=eia_answer(records(3)))) as (_, base):
        panel = data.eia("PET.RWTC.D", key=KEY, base=base, http=http)
    assert KEY not in str(panel.sources())
    assert all(KEY.encode() not in path.read_bytes() for path in http.cache.iterdir())


def test_eia_without_a_key(http):
    with pytest.raises(data.DataError, match="EIA_API_KEY"):
        data.eia("PET.RWTC.D", http=http)


@pytest.mark.parametrize("ids", ["", "A,A", "A B", "../x", "A?b=c", "A,,B"])
def test_ids_that_are_no_ids(ids):
    with pytest.raises(data.DataError, match="series ids"):
        data.fred(ids)
