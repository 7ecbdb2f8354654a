"""FRED against a local server that replays its format and failures; retries and the cache."""

import pytest
from publisher_server import HTML, response, serving

from torchcommodity import data
from torchcommodity.data._sources.locations import MAX_PAUSE, _retry


def test_fred_reads_the_published_format(http):
    with serving(response()) as (server, base):
        panel = data.fred("DCOILWTICO", base=base, http=http)
    assert server.requests == [("/graph/fredgraph.csv", {"id": "DCOILWTICO"})]
    assert panel.values[:, 0].tolist() == [18.31, -36.98, 15.99]
    assert [str(day) for day in panel.dates] == ["2020-04-17", "2020-04-20", "2020-04-23"]
    assert [(f.kind, f.symbol, f.date, f.count) for f in panel.findings] == [
        ("ended", "DCOILWTICO", "2020-04-23", 1),
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
