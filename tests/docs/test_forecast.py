"""The code of docs/forecast.md runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "forecast.md"


def test_forecast_page_code_runs() -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S):
        exec(block, names)
    assert repr(names["backtest"]).startswith("Backtest(har-garch, WTI, SP500; ")
    assert repr(names["forecast"]).startswith("Forecast(WTI, SP500; ")
