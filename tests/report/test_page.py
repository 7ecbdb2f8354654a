"""The page makes no requests, escapes text from data, is accessible, and shows what it must."""

import json
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from torchcommodity.report import ReportData, to_html


class Page(HTMLParser):
    """Tags with their attributes, the content of scripts and styles, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.scripts.append((self.cdata_elem, data))
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(report: ReportData) -> Page:
    return Page(to_html(report))


def test_page_fetches_nothing(page: Page) -> None:
    fetching = ("src", "srcset", "data", "poster", "action", "background", "ping")
    assert not [(tag, name) for tag, attributes in page.tags for name in attributes if name in fetching]
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base", "img"}
    assert all((attributes["href"] or "").startswith("#") for _, attributes in page.tags if "href" in attributes)
    style = "".join(text for tag, text in page.scripts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_page_policy_forbids_requests(page: Page) -> None:
    policy = next(a["content"] or "" for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_page_is_accessible(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("table")) == len(page.all("caption")) >= 6
    assert all("scope" in attributes for attributes in page.all("th"))
    charts = [a for a in page.all("div") if (a.get("id") or "").startswith("chart-")]
    assert all(a["role"] == "group" and len(a["aria-label"] or "") > 40 for a in charts)
    levels = [int(tag[1]) for tag, _ in page.tags if tag in {"h1", "h2", "h3"}]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_page_has_a_placeholder_per_chart_and_unique_ids(page: Page) -> None:
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    figures = json.loads(next(text for tag, text in page.scripts if tag == "script" and text.startswith("{")))
    placeholders = {name for name in ids if name and name.startswith("chart-")}
    assert set(figures) == placeholders
    assert {
        "chart-fan-0",
        "chart-fan-1",
        "chart-calibration",
        "chart-pit",
        "chart-correlation",
        "chart-matrix",
    } == placeholders
    targets = {(a.get("href") or "#")[1:] for a in page.all("a")}
    assert targets <= set(ids)


@pytest.mark.parametrize(
    "text",
    [
        "The forecast states how uncertain prices are",
        "Fitted HAR-GARCH on 2 symbols, 2016-01-04 to 2018-12-28",
        "Past forecasts, checked",
        "Out of sample: yes.",
        "har-garch is",
        "Target: 90 %",
        "In 20 comparisons har-garch has the lower loss in",
        "GARCH(1,1)",
        "RWTC",
        "-37.63",
        "kept;",
        "Not enough history: HENRY_HUB",
        "torchcommodity forecast",
        "US public domain",
        "6 months",
        "regime",
        "What moves the median over 3 months: ",
        "Treated as spot prices, without rolls: WTI, BRENT",
        "Source: U.S. Energy Information Administration (Aug 2026; petroleum products Dec 2025)",
    ],
)
def test_page_shows(page: Page, text: str) -> None:
    assert text in page.text


def test_page_escapes_text_from_data(hostile: ReportData, hostile_text: str, page: Page) -> None:
    bad = Page(to_html(hostile))
    assert len(bad.all("script")) == len(page.all("script"))
    assert not bad.all("img")
    assert not bad.all("b")
    assert hostile_text in bad.text
    assert "</table>$title${css}" in bad.text
    assert not [text for tag, text in bad.scripts if tag == "script" and "<script" in text]


def test_page_says_why_there_is_no_backtest(hostile: ReportData) -> None:
    assert "There is no backtest: too short." in Page(to_html(hostile)).text


def test_page_of_one_symbol_has_no_correlation(single_symbol: ReportData) -> None:
    assert "No correlation: at least two symbols" in Page(to_html(single_symbol)).text
