"""The page stands alone, escapes what came from data, can be read aloud; the files are whole or absent."""

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity.data import Finding, Panel, Provenance, embedded
from torchcommodity.forecast import backtest, calendar, fit, predict
from torchcommodity.report import (
    Contents,
    Evidence,
    Run,
    describe_score,
    summarize,
    to_csv,
    to_html,
    to_json,
    versions,
    write_together,
)
from torchcommodity.report._evidence import tally
from torchcommodity.report._sections import calendars
from torchcommodity.training import FitConfig

HOSTILE = "<script>alert('&\"')</script>"
RUN = Run("2024-01-02T03:04:05Z", "torchcommodity forecast", "embedded", "0" * 64, 0, versions())
BASELINE = FitConfig()


def contents_of(panel: Panel, findings: tuple[Finding, ...] = (), evidence: Evidence | None = None) -> Contents:
    forecaster = fit(panel, BASELINE)
    forecast = predict(forecaster, panel)
    return Contents(panel, findings, forecast, forecaster.record, calendar(panel.dates), RUN, evidence, "too short.")


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    panel = embedded()["WTI", "SP500"].between("2014-01-01", "2018-12-31")
    return summarize(backtest(panel, BASELINE, first_year=2018), ("VIX",))


@pytest.fixture(scope="module")
def contents(evidence: Evidence) -> Contents:
    panel = embedded()["WTI", "SP500"].between("2016-01-01", "2018-12-31")
    finding = Finding("nonpositive", "WTI", "2016-01-04", 7, "-37.63", "kept; returns treat it as missing")
    return contents_of(panel, (finding,), evidence)


@pytest.fixture(scope="module")
def hostile() -> Contents:
    frame = embedded()["WTI", "SP500"].between("2016-01-01", "2018-12-31").to_pandas()
    frame.columns = [HOSTILE, "</table>$title${css}"]
    marks = [Provenance(*[HOSTILE] * 6), Provenance(*["</script><img src=http://x>"] * 6)]
    panel = Panel.from_pandas(frame, units=[HOSTILE, "<b>"], provenance=marks)
    return contents_of(panel, (Finding(HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE),))


class Page(HTMLParser):
    """Tags with their attributes, and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.inside.append((self.cdata_elem, data))
        else:
            self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(contents: Contents) -> Page:
    return Page(to_html(contents))


def test_nothing_is_fetched(page: Page) -> None:
    fetching = ("src", "srcset", "data", "poster", "action", "background", "ping")
    assert not [(tag, name) for tag, attributes in page.tags for name in attributes if name in fetching]
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base", "img"}
    assert all((attributes["href"] or "").startswith("#") for _, attributes in page.tags if "href" in attributes)
    style = "".join(text for tag, text in page.inside if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_forbids_requests(page: Page) -> None:
    policy = next(a["content"] or "" for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_it_can_be_read_aloud(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("table")) == len(page.all("caption")) >= 6
    assert all("scope" in attributes for attributes in page.all("th"))
    charts = [a for a in page.all("div") if (a.get("id") or "").startswith("chart-")]
    assert all(a["role"] == "img" and len(a["aria-label"] or "") > 40 for a in charts)
    levels = [int(tag[1]) for tag, _ in page.tags if tag in {"h1", "h2", "h3"}]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_figure_has_its_place_and_ids_are_unique(page: Page) -> None:
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    figures = json.loads(next(text for tag, text in page.inside if tag == "script" and text.startswith("{")))
    places = {name for name in ids if name and name.startswith("chart-")}
    assert set(figures) == places
    assert {"chart-fan-0", "chart-fan-1", "chart-calibration", "chart-correlation", "chart-matrix"} == places
    targets = {(a.get("href") or "#")[1:] for a in page.all("a")}
    assert targets <= set(ids)


@pytest.mark.parametrize(
    "words",
    ["What this forecast is, and what it is not", "Walk-forward test", "GARCH(1,1)", "DCOILWTICO", "-37.63", "kept;",
     "Left out for want of history: VIX", "torchcommodity forecast", "as packaged by arch", "6 months", "regime",
     "No futures calendar is known for WTI, SP500: taken for spot prices"],
)  # fmt: skip
def test_it_says(page: Page, words: str) -> None:
    assert words in page.words


def test_it_says_what_is_a_future_and_what_is_spot(contents: Contents) -> None:
    panel = contents.panel.with_contracts({"WTI": "CL"})
    assert calendars(panel) == (
        "Front-month futures with a roll calendar: WTI (WTI crude oil, NYMEX); no curve of nearby contracts. "
        "No futures calendar is known for SP500: taken for spot prices, without rolls."
    )
    curve = panel["WTI"].with_curve(panel["WTI"].values.plain()[..., None])
    assert calendars(curve).endswith("NYMEX); a curve of nearby contracts.")


def test_what_came_from_data_is_not_markup(hostile: Contents, page: Page) -> None:
    bad = Page(to_html(hostile))
    assert len(bad.all("script")) == len(page.all("script"))
    assert not bad.all("img")
    assert not bad.all("b")
    assert HOSTILE in bad.words
    assert "</table>$title${css}" in bad.words
    assert not [text for tag, text in bad.inside if tag == "script" and "<script" in text]


def test_json_holds_the_forecast_and_where_it_came_from(contents: Contents) -> None:
    document = json.loads(to_json(contents), parse_constant=pytest.fail)
    assert document["seed"] == 0
    assert document["versions"]["torch"]
    assert [c["series"] for c in document["data"]["columns"]] == ["DCOILWTICO", "^GSPC"]
    symbol = document["forecast"]["symbols"]["WTI"]
    assert symbol["origin"] == "2018-12-28"
    assert symbol["quantiles"]["5"]["0.5"] == contents.forecast.prices[0, 0, 9].item()
    assert document["walk_forward"]["symbols"] == ["WTI", "SP500"]


def test_csv_holds_every_quantile(contents: Contents, tmp_path: Path) -> None:
    path = tmp_path / "forecast.csv"
    path.write_text(to_csv(contents))
    frame = pd.read_csv(path)
    assert len(frame) == 4 * 2 * 19
    reached = frame.loc[frame["symbol"] == "SP500", "target_date"]
    assert set(reached) == {"2019-01-08", "2019-01-31", "2019-04-02", "2019-07-02"}
    np.testing.assert_allclose(frame["price"], contents.forecast.frame()["price"], rtol=1e-12)


def test_without_evidence_the_page_says_why(hostile: Contents) -> None:
    assert "There is none: too short." in Page(to_html(hostile)).words


def test_one_symbol_has_no_correlation() -> None:
    panel = embedded()["WTI"].between("2016-01-01", "2018-12-31")
    assert "it needs at least two symbols" in Page(to_html(contents_of(panel))).words


def test_evidence_survives_json(evidence: Evidence) -> None:
    assert json.loads(Evidence.from_json(evidence.to_json()).to_json()) == json.loads(evidence.to_json())
    with pytest.raises(ValueError, match="expected what to_json wrote"):
        Evidence.from_json('{"first": 1}')


ROWS = {
    "win, p < 0.001": {"model": "ewma", "dm": -9.0, "dm_p": 1e-9},
    "loss, p = 0.010": {"model": "ewma", "dm": 3.0, "dm_p": 0.01},
    "win or chance, p = 0.500": {"model": "ewma", "dm": -0.1, "dm_p": 0.5},
    "same forecast": {"model": "har", "dm": None, "dm_p": None},
    "": {"model": "har-garch", "dm": None, "dm_p": None},
}


@pytest.mark.parametrize("words", ROWS)
def test_wins_and_losses_in_words(words: str) -> None:
    assert describe_score(ROWS[words], "har-garch") == words


def test_the_tally_counts_losses_too(evidence: Evidence) -> None:
    told = tally(replace(evidence, rows=tuple(ROWS.values())))
    assert "Of 4 comparisons" in told
    assert "smaller loss in 2 (1 significant at 5 %)" in told
    assert "larger loss in 1 (1 significant); 1 are the same" in told


DATES = {
    "days": (np.arange("2024-07-01", "2024-07-04", dtype="datetime64[D]"), "2024-07-05", "1 week"),
    "every day": (np.arange("2024-06-01", "2024-07-04", dtype="datetime64[D]"), "2024-07-04", "5 rows"),
    "months": (np.array(["2024-05-01", "2024-06-01", "2024-07-01"], dtype="datetime64[D]"), "2024-07-31", "5 rows"),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_ahead_follow_the_rows(kind: str) -> None:
    dates, ahead, name = DATES[kind]
    found = calendar(dates)
    assert found.ahead(dates[-1], 1) == ahead
    assert found.name(5) == name


def test_files_are_written_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_together(tmp_path / "out", {"a": b"old", "b": b"old"})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_together(tmp_path / "out", {"a": b"new", "b": b"new"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"old", "b": b"old"}


def test_a_place_that_is_taken_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(ValueError, match="got a folder of that name"):
        write_together(tmp_path, {"a": b"", "b": b""})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="expected a folder"):
        write_together(tmp_path / "file" / "deep", {"a": b""})
