"""Gallery: every example runs while the site is built, and its page shows its text, output, figure and code."""

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
KIT_EXAMPLES = ROOT / "opkit" / "examples"
FRAME = '<iframe class="figure" src="../figures/{0}.html" title="{1}" loading="lazy"></iframe>'


def on_files(files: Files, config: MkDocsConfig) -> None:
    scripts = sorted(EXAMPLES.glob("[0-9]*.py"))
    figures = Path(mkdtemp(prefix="gallery"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda script: _run(script, figures), scripts))
    index = (EXAMPLES / "README.md").read_text()
    studies = {f"examples/{script.stem}.md": _page(script, text, figures) for script, text in zip(scripts, outputs)}
    of_kit = (KIT_EXAMPLES / "README.md").read_text()
    operators = sorted(KIT_EXAMPLES.glob("*.py"), key=lambda script: of_kit.index(script.name))
    operator_pages = {f"opkit/examples/{script.stem}.md": _page(script) for script in operators}
    contents = {"examples/index.md": index, **studies, "opkit/examples/index.md": of_kit, **operator_pages}
    for page, content in contents.items():
        files.append(File.generated(config, page, content=content))
    for figure in figures.iterdir():
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    (gallery,) = [entry["Gallery"] for entry in config.nav if "Gallery" in entry]
    gallery.extend(["examples/index.md", *studies])
    (kit,) = [entry["torch-opkit"] for entry in config.nav if "torch-opkit" in entry]
    (section,) = [entry["Examples"] for entry in kit if "Examples" in entry]
    section.extend(["opkit/examples/index.md", *operator_pages])


def _data_option(script: Path) -> list[str]:
    """CRUSH names a file with prices of the soybean crush, which the project does not ship."""
    crush = os.environ.get("CRUSH") if script.stem == "01_correlation_regimes" else None
    return ["--data", crush, "--window", "120", "--lag", "63"] if crush else []


def _run(script: Path, figures: Path) -> str:
    command = [sys.executable, str(script), *_data_option(script), "--out", str(figures)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "opkit"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if process.returncode:
        raise PluginError(f"{script.name} exited with {process.returncode}:\n{process.stderr}")
    return process.stdout


def _page(script: Path, output: str = "", figures: Path | None = None) -> str:
    text = script.read_text()
    title, _, description = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    parts = [f"# {title}", description.strip()]
    if figures and (figures / f"{script.stem}.html").exists():
        parts.append(FRAME.format(script.stem, title))
    if output:
        command = " ".join(["python", f"examples/{script.name}", *_data_option(script), "--out out"])
        parts.append(f"`{command}` prints\n\n```text\n{output.rstrip()}\n```")
    code = text.split('"""', 2)[2].strip()
    return "\n\n".join([*parts, f"## {script.name}\n\n```python\n{code}\n```\n"])
