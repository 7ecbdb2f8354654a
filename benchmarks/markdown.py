"""Generated tables in pages that people write."""

from pathlib import Path


def into(page: Path, name: str, text: str) -> None:
    """Put `text` between `<!-- name -->` and `<!-- /name -->`."""
    before, opened, rest = page.read_text().partition(f"<!-- {name} -->")
    _, closed, after = rest.partition(f"<!-- /{name} -->")
    if not (opened and closed):
        raise SystemExit(f"{page}: no <!-- {name} --> ... <!-- /{name} -->")
    page.write_text(f"{before}{opened}\n{text}\n{closed}{after}")
