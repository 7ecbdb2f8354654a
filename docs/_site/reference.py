"""API reference: one generated page per public module, from the docstrings."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PACKAGE = Path(__file__).parents[2] / "torchcommodity"
EXCLUDED = {"cli"}  # its reference is `torchcommodity --help`


def on_files(files: Files, config: MkDocsConfig) -> None:
    pages = []
    for name in public_modules():
        content = f"# torchcommodity.{name}\n\n::: torchcommodity.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=content))
        pages.append({name: f"reference/{name}.md"})
    (section,) = [entry["Reference"] for entry in config.nav if "Reference" in entry]
    section.extend(pages)


def public_modules() -> list[str]:
    """Dotted names without the package; a module is private if a part of its path starts with "_".

    Nothing is imported, because that would load torch.
    """
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    parts = [path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts for path in paths]
    return sorted(
        ".".join(part) for part in parts if part and part[0] not in EXCLUDED and all(name[0] != "_" for name in part)
    )
