"""Colors are legible in both schemes, and the dark one has every color of the light one."""

import pytest

from torchcommodity.charts import PALETTE, palette_css


def luminance(color: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    dark, light = sorted(map(luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", PALETTE)
@pytest.mark.parametrize("text", ["ink", "muted", "accent", "mark", "better", "worse"])
@pytest.mark.parametrize("background", ["paper", "soft", "warn"])
def test_text_has_enough_contrast(scheme: str, text: str, background: str) -> None:
    assert contrast(PALETTE[scheme][text], PALETTE[scheme][background]) >= 4.5


@pytest.mark.parametrize("scheme", PALETTE)
def test_lines_of_charts_differ_from_their_background(scheme: str) -> None:
    colors = PALETTE[scheme]
    assert contrast(colors["median"], colors["band50"]) >= 3
    assert all(contrast(colors[name], colors["paper"]) >= 3 for name in ("ink", "accent", "mark", "series3", "series4"))


def test_schemes_have_the_same_names_and_no_color_twice() -> None:
    light, dark = PALETTE.values()
    assert light.keys() == dark.keys()
    assert len(set(light.values())) == len(light)  # the report finds the dark color of a chart by its light one


def test_css_has_a_rule_per_scheme() -> None:
    assert palette_css().count(":root {") == 2
    assert "--band80: #37596f;" in palette_css()
