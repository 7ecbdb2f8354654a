"""The page on portfolios cannot lie: its Python runs, block after block."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "portfolio.md").read_text()


def test_python_blocks_run_one_after_another() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "portfolio.md", "exec"), names)


def test_tables_are_there() -> None:
    for name in ("futures", "embedded"):
        found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", PAGE, flags=re.DOTALL)
        assert found
        assert found[1].count("| untrained |") == 4
