"""docs/kernels: the C++ of all pages builds as one library, and the Python runs with it."""

import functools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import torch_opkit as opkit
from torch_opkit._build import compiler, inline
from torch_opkit._build.architectures import gencode

PAGES = sorted((Path(__file__).parents[1] / "docs" / "kernels").glob("*.md"))
FUNCTION = re.compile(r"^(?:Tensor|double|std::tuple<[^>]*>) (\w+)\([^)]*Tensor& ", re.MULTILINE)


def blocks(language: str, page: Path) -> list[str]:
    matches: list[str] = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return matches


@functools.cache
def kernels() -> SimpleNamespace:
    """Blocks marked "wrong" are built too: the pages say that they compile."""
    text = "\n".join(block for page in PAGES for language in ("cpp", "cpp wrong") for block in blocks(language, page))
    return opkit.load_inline("docs_kernels", text, functions=FUNCTION.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_kernel_page_python_runs(page: Path) -> None:
    names = {"torch": torch, "opkit": opkit, "kernels": kernels(), "__name__": __name__}
    for block in blocks("python", page):
        exec(compile(block, page.name, "exec"), names)


def test_kernel_page_error_does_not_compile() -> None:
    (block,) = [block for page in PAGES for block in blocks("cpp error", page)]
    with pytest.raises(opkit.BuildError, match=r"(use of|call to) deleted function"):
        opkit.load_inline("docs_error", block, functions=FUNCTION.findall(block))


@pytest.mark.slow
@pytest.mark.compile
def test_kernel_page_cuda_compiles(tmp_path: Path) -> None:
    try:
        compiler.nvcc()
    except opkit.BuildError:
        pytest.skip("no nvcc: the CUDA blocks were not compiled")
    source = tmp_path / "pages.cu"
    source.write_text(inline.PRELUDE + "\n".join(block for page in PAGES for block in blocks("cuda", page)))
    toolchain = compiler.Toolchain(gencode=tuple(gencode(["9.0"])))
    subprocess.run(toolchain.compile_command(source, tmp_path / "pages.o"), check=True)
