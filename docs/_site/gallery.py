"""The gallery: every example is run while the site is built, and its page shows what it printed, drew and says."""

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FRAME = '<iframe class="figure" src="../figures/{0}.html" title="{1}" loading="lazy"></iframe>'


def on_files(files: Files, config: MkDocsConfig) -> None:
    scripts = sorted(EXAMPLES.glob("[0-9]*.py"))
    figures = Path(mkdtemp(prefix="gallery"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = list(pool.map(lambda script: _run(script, figures), scripts))
    pages = [("examples/index.md", (EXAMPLES / "README.md").read_text())]
    for script, text in zip(scripts, printed):
        pages.append((f"examples/{script.stem}.md", _page(script, text, figures)))
    order = pages[0][1]  # the README's, from easy to hard
    found = sorted((EXAMPLES / "operators").glob("*.py"), key=lambda script: order.index(script.name))
    operators = {script.stem: (f"examples/operators/{script.stem}.md", _page(script)) for script in found}
    for page, content in [*pages, *operators.values()]:
        files.append(File.generated(config, page, content=content))
    for figure in figures.iterdir():
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    _section(config.nav, "Gallery").extend(page for page, _ in pages)
    _section(_section(config.nav, "Operators"), "Worked examples").extend(
        {name: page} for name, (page, _) in operators.items()
    )


def _section(nav: list[dict[str, list[object]]], title: str) -> list[object]:
    (found,) = [entry[title] for entry in nav if isinstance(entry, dict) and title in entry]
    return found


def _given(script: Path) -> list[str]:
    """The prices of the soybean crush may not be passed on: whoever has them names a file in CRUSH."""
    crush = os.environ.get("CRUSH") if script.stem == "01_correlation_regimes" else None
    return ["--data", crush] if crush else []


def _run(script: Path, figures: Path) -> str:
    command = [sys.executable, str(script), *_given(script), "--out", str(figures)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    if done.returncode:
        raise PluginError(f"{script.name} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _page(script: Path, printed: str = "", figures: Path | None = None) -> str:
    text = script.read_text()
    title, _, story = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    parts = [f"# {title}", story.strip()]
    if figures and (figures / f"{script.stem}.html").exists():
        parts.append(FRAME.format(script.stem, title))
    if printed:
        command = " ".join(["python", f"examples/{script.name}", *_given(script), "--out out"])
        parts.append(f"`{command}` prints\n\n```text\n{printed.rstrip()}\n```")
    code = text.split('"""', 2)[2].strip()
    return "\n\n".join([*parts, f"## {script.name}\n\n```python\n{code}\n```\n"])
