"""The EIA against a local server that replays its format and failures."""

import json

import pytest
from publisher_server import HTML, response, serving

from torchcommodity import data

KEY = "secret-key-1234"


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
