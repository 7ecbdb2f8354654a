"""API reference: one generated page per public module, from the docstrings."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PACKAGES = {"Reference": ROOT / "torchcommodity", "torch-opkit": ROOT / "opkit" / "torch_opkit"}
EXCLUDED = {"torchcommodity", "torchcommodity.cli"}  # names of its packages; its reference is `torchcommodity --help`


def on_files(files: Files, config: MkDocsConfig) -> None:
    for title, package in PACKAGES.items():
        (section,) = [entry[title] for entry in config.nav if title in entry]
        if title != "Reference":
            (section,) = [entry["Reference"] for entry in section if "Reference" in entry]
        for name in public_modules(package):
            short = name.removeprefix("torchcommodity.")
            content = f"# {name}\n\n::: {name}\n"
            files.append(File.generated(config, f"reference/{short}.md", content=content))
            section.append({short: f"reference/{short}.md"})


def public_modules(package: Path) -> list[str]:
    """Dotted names; a module is private if a part of its path starts with "_".

    Nothing is imported, because that would load torch.
    """
    paths = [path.relative_to(package.parent) for path in package.rglob("*.py")]
    parts = [path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts for path in paths]
    names = {".".join(part) for part in parts if all(name[0] != "_" for name in part)}
    return sorted(names - EXCLUDED)
