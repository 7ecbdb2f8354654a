"""Doubtful prices: a warning, an error in strict mode, and findings that somebody accepted."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data, export, forecast
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

SMALL = FitConfig(  # is exported sooner
    HarGarchConfig(HarConfig(horizons=(2,), levels=(0.1, 0.5, 0.9), halflives=(8,), trends=(5,)))
)

pytestmark = pytest.mark.filterwarnings("error::torchcommodity.data.DataWarning")


@pytest.fixture
def frame() -> pd.DataFrame:
    """Real prices whose origin a frame does not tell."""
    return data.embedded(["WTI"]).between("2012-01-01", "2018-12-31").to_pandas().dropna()


def test_fit_on_prices_of_unstated_origin_warns_where_it_is_called(frame: pd.DataFrame) -> None:
    with pytest.warns(data.DataWarning) as caught:
        forecast.fit(frame)
    (warning,) = caught
    assert str(warning.message) == (
        "fit: nobody states where the prices of WTI come from; findings: 1 ended (see Panel.findings); strict=True "
        "refuses such prices"
    )
    assert Path(warning.filename) == Path(__file__)


def test_backtest_on_prices_with_findings_says_which(frame: pd.DataFrame) -> None:
    stale = frame.copy()
    stale.iloc[900:915] = stale.iloc[900]
    known = data.Provenance("CME", "settlements", "own", "2024-01-01", "", "CL")
    doubtful = data.to_panel(stale, provenance=[known])
    with pytest.warns(
        data.DataWarning, match=r"^backtest: findings: 1 ended, 1 stale \(see Panel.findings\); strict=True"
    ):
        forecast.backtest(doubtful, first_year=2018, baselines={})
    forecast.fit(data.accept_findings(doubtful, ["ended", "stale"]))  # no warning


def test_embedded_prices_give_no_warning() -> None:
    assert data.embedded().findings
    forecast.fit(data.embedded(["WTI"]).between("2015-01-01"))


def test_strict_mode_refuses_what_nobody_vouches_for(frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match=r"^fit: expected prices with a publisher .*; got none for WTI"):
        forecast.fit(frame, strict=True)
    frame.to_csv(tmp_path / "wti.csv")
    with pytest.raises(data.DataError, match="expected prices with a publisher"):
        data.read(tmp_path / "wti.csv", strict=True)
    stated = data.read(tmp_path / "wti.csv", publisher="EIA", strict=True, accept=["ended"])
    forecaster = forecast.fit(stated, SMALL, strict=True)
    export.export(forecaster, tmp_path / "wti.pt2", strict=True)
    with pytest.raises(data.DataError, match="got 1 nonpositive"):
        data.read("embedded", ["WTI"], strict=True)
    assert data.read("embedded", ["WTI"], strict=True, accept=["nonpositive"]).findings
    with pytest.raises(data.DataError, match="accept: expected kinds of findings, such as nonpositive; got negative"):
        data.read("embedded", ["WTI"], accept=["negative"])


def test_the_environment_makes_everything_strict(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHCOMMODITY_STRICT", "1")
    with pytest.raises(data.DataError, match="expected prices with a publisher"):
        forecast.fit(frame)
    with pytest.warns(data.DataWarning):
        forecast.fit(frame, strict=False)


def test_export_of_a_model_of_unstated_prices_is_refused_in_strict_mode(frame: pd.DataFrame, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", data.DataWarning)
        forecaster = forecast.fit(frame)
    with pytest.raises(data.DataError, match=r"^export: strict mode expects a model of prices with a publisher"):
        export.export(forecaster, tmp_path / "wti.pt2", strict=True)
    assert not list(tmp_path.iterdir())


ROWS = np.arange(600)
SERIES: dict[str, Callable[[], np.ndarray]] = {
    "line": lambda: 50 + 0.1 * ROWS,
    "sine": lambda: 50 + 10 * np.sin(ROWS / 30),
    "growth": lambda: 50 * 1.001**ROWS,
    "steps": lambda: 50 + 0.25 * np.cumsum(np.random.default_rng(0).choice([-1, 1], 600)),
}


@pytest.mark.parametrize("name", SERIES)
def test_a_series_that_no_market_makes_is_a_finding(name: str) -> None:
    index = pd.bdate_range("2020-01-01", periods=600, name="date")
    panel = data.to_panel(pd.DataFrame({"WTI": SERIES[name]()}, index=index))
    assert "no market" in {finding.kind for finding in panel.findings}


def test_no_embedded_price_looks_like_none_of_a_market() -> None:
    for frequency in ("daily", "monthly"):
        panel = data.embedded(list(data.embedded_symbols(frequency)), frequency=frequency)
        assert "no market" not in {finding.kind for finding in panel.findings}
