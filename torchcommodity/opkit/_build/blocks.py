"""Blocks of sources that are compiled as one: reading the headers takes about half of the time of a small kernel."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

INCLUDE = re.compile(r'^#include (?:"(.+)"|(<.+>))', re.MULTILINE)
SHARED = re.compile(r"^namespace [\w:]+ \{", re.MULTILINE)  # functions for other sources, whose namespace must stay
SIZE = 4  # small enough that many processors have work, and that a change of one kernel compiles soon


def in_blocks(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Write blocks of up to SIZE kernels of one family into `folder`; returns them with the sources that stay alone.

    What compiles longest comes first, .cu files before all, so that the processors finish at about the same time.
    """
    cuda = [path for path in sources if path.suffix == ".cu"]
    shared = [path for path in sources if path.suffix == ".cpp" and SHARED.search(path.read_text())]
    kernels = [path for path in sources if path not in (*cuda, *shared)]
    families = groupby(kernels, lambda path: path.parent)
    return [*cuda, *(block for _, family in families for block in _blocks([*family], folder)), *shared]


def _blocks(kernels: Sequence[Path], folder: Path) -> Iterator[Path]:
    for k in range(0, len(kernels), SIZE):
        block = folder / f"{kernels[0].parent.name.strip('_')}_{k // SIZE + 1}.cpp"
        block.write_text(block_text(kernels[k : k + SIZE]))
        yield block


def block_text(kernels: Sequence[Path]) -> str:
    """Every header once, then each kernel in a namespace of its own: kernels give the same names to what is theirs."""
    headers = dict.fromkeys(header for path in kernels for header in _headers(path))
    lines = [f"#include {header}" for header in headers]
    lines += [f'namespace in_{path.stem} {{\n#include "{path}"\n}}' for path in kernels]
    return "\n".join(lines) + "\n"


def _headers(kernel: Path) -> Iterator[str]:
    for quoted, other in INCLUDE.findall(kernel.read_text()):
        beside = kernel.parent / quoted
        yield other or f'"{beside if beside.is_file() else quoted}"'
