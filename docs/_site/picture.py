"""Picture of the home page in both schemes: `python docs/_site/picture.py` writes docs/assets/forecast*.png."""

import json
import shutil
from pathlib import Path

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

import torchcommodity as tc
from torchcommodity.charts import PALETTE

ASSETS = Path(__file__).parents[1] / "assets"
SIZE = {"width": 960, "height": 400}
HIDDEN = {"title": None, "margin": {"t": 48, "r": 24}}


def main() -> None:
    prices = tc.read("embedded")
    figure = tc.fit(prices).predict(prices).plot("WTI").update_layout(**HIDDEN, **SIZE).to_json()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=2)
        for scheme, name in {"light": "forecast.png", "dark": "forecast-dark.png"}.items():
            chart = go.Figure(json.loads(recolor(figure, scheme)))
            page.set_content(chart.to_html(config={"displayModeBar": False}), wait_until="load")
            page.locator(".js-plotly-plot").screenshot(path=ASSETS / name)
        browser.close()


def recolor(figure: str, scheme: str) -> str:
    """A chart with the colors of the light scheme replaced by those of another one."""
    for name, color in PALETTE["light"].items():
        figure = figure.replace(f'"{color}"', f'"{PALETTE[scheme][name]}"')
    return figure


if __name__ == "__main__":
    main()
