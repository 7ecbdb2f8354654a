"""Generated tables in Markdown pages."""

from pathlib import Path


def replace_table(page: Path, name: str, table: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`."""
    before, start, rest = page.read_text().partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not (start and end):
        raise SystemExit(f"{page}: no <!-- {name} --> ... <!-- /{name} -->")
    page.write_text(f"{before}{start}\n{table}\n{end}{after}")
