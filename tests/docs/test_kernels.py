"""The pages about kernels cannot lie: their C++ is built, as one library, and their Python runs against it."""

import functools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from torchcommodity import opkit
from torchcommodity.opkit._build import compiler, inline
from torchcommodity.opkit._build.flags import gencode

PAGES = sorted((Path(__file__).parents[2] / "docs" / "kernels").glob("*.md"))
FUNCTION = re.compile(r"^(?:Tensor|double|std::tuple<[^>]*>) (\w+)\([^)]*Tensor& ", re.MULTILINE)


def blocks(kind: str, page: Path) -> list[str]:
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return found


@functools.cache
def kernels() -> SimpleNamespace:
    """What is called wrong is built too: that the compiler is silent is a part of the story."""
    text = "\n".join(block for page in PAGES for kind in ("cpp", "cpp wrong") for block in blocks(kind, page))
    return opkit.load_inline("docs_kernels", text, functions=FUNCTION.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page: Path) -> None:
    names = {"torch": torch, "opkit": opkit, "kernels": kernels(), "__name__": __name__}
    for block in blocks("python", page):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_links_lead_somewhere(page: Path) -> None:
    assert all((page.parent / link).exists() for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()))


def test_what_is_said_to_be_refused_is_refused() -> None:
    (refused,) = [block for page in PAGES for block in blocks("cpp refused", page)]
    with pytest.raises(opkit.BuildError, match=r"(use of|call to) deleted function"):
        opkit.load_inline("docs_refused", refused, functions=FUNCTION.findall(refused))


def test_nvcc_takes_the_cuda_of_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        compiler.nvcc()
    except opkit.BuildError:
        pytest.skip("no nvcc: the CUDA blocks were not compiled")
    monkeypatch.setattr(compiler, "gencode", functools.partial(gencode, ["9.0"]))
    source = tmp_path / "pages.cu"
    source.write_text(inline.PRELUDE + "\n".join(block for page in PAGES for block in blocks("cuda", page)))
    subprocess.run(compiler.Toolchain().compile_command(source, tmp_path / "pages.o"), check=True)
