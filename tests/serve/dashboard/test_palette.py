"""The page has the colors of reports and charts."""

import re
from pathlib import Path

import pytest

from torchcommodity.charts import PALETTE
from torchcommodity.serve import dashboard


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_the_colors_of_the_palette(scheme: str) -> None:
    css = (Path(dashboard.__file__).parent / "page" / "page.css").read_text("utf-8")
    light, dark = css.split("@media (prefers-color-scheme: dark)", 1)
    colors = dict(re.findall(r"--(\w+): (#\w+);", (light if scheme == "light" else dark).split("* {")[0]))
    shared = colors.keys() & PALETTE[scheme].keys()
    assert {"paper", "ink", "band50", "band80", "band90", "median"} <= shared
    assert {name: colors[name] for name in shared} == {name: PALETTE[scheme][name] for name in shared}
