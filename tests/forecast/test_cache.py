"""The disk cache: keys, damage, size limits, and the span of a backtest."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel, to_panel
from torchcommodity.forecast import _cache
from torchcommodity.training import FitConfig, TrainConfig


@pytest.fixture
def prices() -> Panel:
    return data.embedded(["WTI"]).between("2015-01-01", "2018-12-31")


def entry_names() -> list[str]:
    return [entry.path.name for entry in forecast.cache_entries()]


def test_cached_fit_loads_what_it_stored(prices: Panel) -> None:
    first, was_cached = forecast.cached_fit(prices)
    assert not was_cached
    second, was_cached = forecast.cached_fit(prices.to_pandas())
    assert was_cached
    assert torch.equal(first.predict(prices).prices, second.predict(prices).prices)
    assert [entry.kind for entry in forecast.cache_entries()] == ["forecaster"]


def test_cached_fit_key_depends_on_prices_settings_and_seed(prices: Panel) -> None:
    forecast.cached_fit(prices)
    others = (
        (prices.between(None, "2018-06-30"), FitConfig(), 0),
        (prices, FitConfig(symmetry=0.0), 0),
        (prices, FitConfig(), 1),
    )
    for panel, config, seed in others:
        assert not forecast.cached_fit(panel, config, seed=seed)[1]
    assert len(entry_names()) == 4


def test_cached_fit_replaces_a_damaged_file(prices: Panel) -> None:
    forecast.cached_fit(prices)
    path = forecast.cache_entries()[0].path
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    assert not forecast.cached_fit(prices)[1]
    assert path.read_bytes() == content


def test_cached_fit_of_other_symbols_or_data_is_not_served() -> None:
    prices = data.embedded(["WTI", "BRENT"]).with_references(None)
    asked = prices.between("2012-01-01", "2016-12-31")
    first, _ = forecast.cached_fit(asked)
    (entry,) = forecast.cache_entries()
    for other in (asked.select(list(reversed(asked.symbols))), prices.between("2011-01-01", "2016-12-31")):
        forecast.fit(other).save(entry.path)
        second, was_cached = forecast.cached_fit(asked)
        assert not was_cached
        assert second.checksum == first.checksum


def test_cached_fit_of_other_options_is_not_served(prices: Panel) -> None:
    first, _ = forecast.cached_fit(prices)
    (entry,) = forecast.cache_entries()
    other_series = replace(prices, provenance=(replace(prices.provenance[0], series="spread BRENT-WTI (BRENT, WTI)"),))
    bytes_of_others = [
        forecast.fit(prices, signed=["WTI"]).to_bytes(),
        forecast.fit(prices, references=data.embedded(["GASOLINE_NYH"])).to_bytes(),
        forecast.fit(prices, FitConfig(symmetry=0.0)).to_bytes(),
        forecast.fit(prices, model="har-lstm", config=FitConfig(train=TrainConfig(epochs=0))).to_bytes(),
        forecast.fit(other_series).to_bytes(),
    ]
    assert forecast.cached_fit(prices)[1]
    for content in bytes_of_others:
        entry.path.write_bytes(content)
        second, was_cached = forecast.cached_fit(prices)
        assert not was_cached
        assert second.checksum == first.checksum


def test_cached_fit_of_references_curve_and_signed_prices_is_served(prices: Panel) -> None:
    panel = data.add_references(prices, data.embedded(["GASOLINE_NYH"]))
    for _ in range(2):
        _, was_cached = forecast.cached_fit(panel, signed=["WTI"])
    assert was_cached


def test_cached_fit_works_without_a_writable_cache(
    prices: Panel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHCOMMODITY_CACHE", str(tmp_path / "file"))
    assert not forecast.cached_fit(prices)[1]
    assert forecast.cache_entries() == []


def store(name: str, content: bytes, used: int) -> None:
    _cache.load_or_compute(name, lambda path: path.read_bytes(), lambda: content, bytes)
    for entry in forecast.cache_entries():
        if entry.path.name == name:
            os.utime(entry.path, (used, used))


def test_cache_removes_the_least_recently_used_beyond_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cache, "MAX_FILES", 3)
    for n in range(4):
        store(f"{n}.json", b"x", used=n)
    assert entry_names() == ["1.json", "2.json", "3.json"]
    store("1.json", b"never computed", used=9)  # a hit makes it the latest
    store("4.json", b"x", used=10)
    assert entry_names() == ["3.json", "1.json", "4.json"]
    monkeypatch.setattr(_cache, "MAX_BYTES", 5)
    store("5.json", b"12345", used=11)
    assert entry_names() == ["5.json"]
    store("6.json", b"123456", used=12)  # larger than the limit: kept until the next write
    assert entry_names() == ["6.json"]


def test_clear_cache_removes_results_and_leaves_downloads(prices: Panel) -> None:
    forecast.cached_fit(prices)
    download = forecast.cache_entries()[0].path.parents[1] / "0123.reply"
    download.touch()
    assert forecast.clear_cache() == 1
    assert forecast.cache_entries() == []
    assert forecast.clear_cache() == 0
    assert download.exists()


def test_data_hash_covers_prices_contracts_and_curve(prices: Panel) -> None:
    futures = prices.with_contracts({"WTI": "CL"})
    curve = futures.with_curve(prices.values.plain()[..., None])
    panels = (prices, prices.between(None, "2018-06-30"), futures, curve)
    assert len({forecast.data_hash(panel) for panel in panels}) == 4
    assert forecast.data_hash(to_panel(prices.to_pandas())) == forecast.data_hash(prices)


def test_backtest_span_leaves_out_young_symbols() -> None:
    panel = data.embedded()
    assert forecast.backtest_span(panel) == (["WTI", "BRENT", "HENRY_HUB"], (2020, 2026))
    assert forecast.backtest_span(panel, 2005) == (["WTI", "BRENT", "HENRY_HUB"], (2005, 2026))
    assert forecast.backtest_span(panel, 1995) == (["WTI", "BRENT"], (1995, 2026))
    with pytest.raises(
        ValueError,
        match="backtest: a symbol must have 5 years of prices before the first test year; got",
    ):
        forecast.backtest_span(panel.between("2023-01-01", None))


def test_cached_backtest_loads_what_it_stored() -> None:
    prices = data.embedded(["WTI", "HENRY_HUB"]).between("1994-01-01", "2001-12-31")
    first, was_cached = forecast.cached_backtest(prices, first_year=2001)
    assert not was_cached
    assert (first.symbols, first.excluded, first.first) == (("WTI",), ("HENRY_HUB",), "2001-01-02")
    second, was_cached = forecast.cached_backtest(prices, first_year=2001)
    assert was_cached
    assert second.to_json() == first.to_json()
    assert not forecast.cached_backtest(prices["WTI"], first_year=2001)[1]  # other symbols are excluded
