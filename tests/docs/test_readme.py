"""The README cannot lie: its Python runs, its files exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_python_blocks_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {})
    assert "har" not in capsys.readouterr().err


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("table", ["score", "speed"])
def test_tables_are_there(table: str) -> None:
    found = re.search(rf"<!-- {table} -->\n(.*?)<!-- /{table} -->", README, flags=re.DOTALL)
    assert found
    assert found[1].count("|") > 20
