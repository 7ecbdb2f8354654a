"""The build of the native library: what is compiled again, for which platform. A fake compiler records its calls."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torch_opkit as opkit
from native import library

COMPILER = """#!{python}
import pathlib, sys, time
with open("{log}", "a") as log:
    log.write(" ".join(sys.argv[1:]) + chr(10))
source, target = map(pathlib.Path, (sys.argv[-3], sys.argv[-1]))
if "-header-waits-for-a-source" in sys.argv and source.suffix == ".h":
    end = time.monotonic() + 30
    while ".cpp" not in pathlib.Path("{log}").read_text():
        if time.monotonic() > end:
            sys.exit("no source was compiled meanwhile")
        time.sleep(0.01)
if source.suffix == ".cpp" and "wrong.h" in source.read_text():
    sys.exit(f"{{source}}:1:1: error: wrong")
target.write_text("object")
"""
FILES = {
    "_csrc/native.h": "",
    "_first/one.cpp": '#include "one.h"',
    "_first/one.h": "",
    "_first/two.cpp": "#include <vector>",
    "_first/shared.cpp": "namespace commodity::first {\n}",
    "_second/three.cpp": '#include "native.h"',
    "_second/three.cu": "",
}


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the sources of a small library."""
    folder = tmp_path / "package" / "ops"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(library, "PACKAGE", folder.parent)
    monkeypatch.setattr(library, "HEADERS", folder / "_csrc")
    return folder


@pytest.fixture
def build(ops: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Build the small library; returns the commands, of which the last one links."""
    log, script = tmp_path / "log", tmp_path / "compiler"
    script.write_text(COMPILER.format(python=sys.executable, log=log))
    script.chmod(0o755)

    def run(**settings: object) -> list[str]:
        log.write_text("")
        arguments = {"compiler": (str(script), "-target", "a machine"), **settings}
        library.build_library(tmp_path / "_C.so", tmp_path / "objects", **arguments)
        return log.read_text().splitlines()

    return run


def sources(commands: list[str]) -> list[str]:
    return sorted(Path(command.split()[-3]).name for command in commands[:-1] if " -include " in command)


def test_library_compiles_again_what_has_changed(build: Callable[..., list[str]], ops: Path) -> None:
    commands = build()
    assert sources(commands) == ["first_1.cpp", "second_1.cpp", "shared.cpp"]
    assert sum("-x c++-header" in command for command in commands) == 1
    assert "-shared" in commands[-1]
    assert len(build()) == 1
    (ops / "_first/one.h").write_text("int x;")
    assert sources(build()) == ["first_1.cpp"]
    (ops / "_third").mkdir()
    (ops / "_third/four.cpp").write_text("")
    assert sources(build()) == ["third_1.cpp"]


def test_library_compiles_four_kernels_of_a_family_as_one_source(
    build: Callable[..., list[str]], ops: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (ops / f"_first/{name}.cpp").write_text("namespace {\n}")
    assert sources(build()) == ["first_1.cpp", "first_2.cpp", "second_1.cpp", "shared.cpp"]
    first = (tmp_path / "objects/first_2.cpp").read_text()
    assert first == f'#include <vector>\nnamespace in_two {{\n#include "{ops}/_first/two.cpp"\n}}\n'
    assert f'#include "{ops}/_first/one.h"\nnamespace in_a' in (tmp_path / "objects/first_1.cpp").read_text()


def test_library_compiles_a_kernel_of_both_devices_for_each(ops: Path, tmp_path: Path) -> None:
    kernel = ops / "_first/both.kernel.h"
    kernel.write_text('#include "one.h"\nnamespace {\n}')
    blocks = library.in_blocks(library.sources(cuda=True), tmp_path, cuda=True)
    assert [path.name for path in blocks] == ["three.cu", "both.cu", "first_1.cpp", "second_1.cpp", "shared.cpp"]
    common = f'#include "{ops}/_first/one.h"\nnamespace in_both {{\n#include "{kernel}"\n}}\n'
    assert (tmp_path / "both.cu").read_text() == "#define COMMODITY_GPU\n" + common
    assert f'namespace in_both {{\n#include "{kernel}"' in (tmp_path / "first_1.cpp").read_text()


def test_library_compiles_all_sources_after_a_change_of_the_precompiled_header(
    build: Callable[..., list[str]], ops: Path, tmp_path: Path
) -> None:
    build()
    (ops / "_csrc/native.h").write_text("int x;")
    assert sources(build()) == ["first_1.cpp", "second_1.cpp", "shared.cpp"]
    assert len(list((tmp_path / "objects").glob("precompiled-*"))) == 2  # the header and what it is compiled to


def test_library_compiles_the_short_sources_last(
    build: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_JOBS", "1")
    header, *compilations, _ = build()
    assert "-x c++-header" in header
    assert [Path(command.split()[-3]).name for command in compilations] == ["first_1.cpp", "second_1.cpp", "shared.cpp"]


def test_library_compiles_its_first_source_beside_the_precompiled_header(
    build: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_JOBS", "2")
    compiler = str(tmp_path / "compiler"), "-target", "a machine", "-header-waits-for-a-source"
    assert "-shared" in build(compiler=compiler)[-1]


def test_library_deletes_the_object_of_a_deleted_source(
    build: Callable[..., list[str]], ops: Path, tmp_path: Path
) -> None:
    build()
    (ops / "_first/shared.cpp").unlink()
    assert "shared.cpp" not in build()[-1]
    assert not list((tmp_path / "objects").glob("shared*"))


def test_library_reports_the_first_error_and_compiles_the_rest_later(
    build: Callable[..., list[str]], ops: Path
) -> None:
    (ops / "_first/one.cpp").write_text('#include "wrong.h"')
    with pytest.raises(opkit.BuildError, match=r"first_1.cpp:1:1: error: wrong"):
        build()
    (ops / "_first/one.cpp").write_text("")
    assert "first_1.cpp" in sources(build())


def test_library_for_another_platform_takes_its_compiler_and_its_torch(
    build: Callable[..., list[str]], tmp_path: Path
) -> None:
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "version.py").write_text("cuda = None")
    *compilations, link = build(torch=torch, platform="darwin", ldflags=("-Wl,-x",))
    assert all("-target a machine" in command and f"-isystem {torch}/include" in command for command in compilations)
    assert f"-L{torch}/lib" in link
    assert "-dynamiclib -undefined dynamic_lookup" in link
    assert "-Wl,-x" in link


def test_library_has_cuda_follows_the_environment_then_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.touch(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(library, "torch_folder", lambda: tmp_path)
    monkeypatch.delenv("TORCHCOMMODITY_CUDA", raising=False)
    for cuda, expected in {"None": False, "'13.0'": True}.items():
        (tmp_path / "version.py").write_text(f"cuda = {cuda}")
        assert library.has_cuda() is expected
    nvcc.unlink()
    assert not library.has_cuda()
    monkeypatch.setenv("TORCHCOMMODITY_CUDA", "1")
    assert library.has_cuda()


def test_library_sources_are_those_of_the_package() -> None:
    names = [path.name for path in library.sources(cuda=True)]
    assert {"rolling_quantile.cpp", "rolling_quantile.cu", "garch_variance.kernel.h"} <= set(names)
    assert not [path for path in library.sources() if path.suffix == ".cu"]


@pytest.mark.parametrize(
    ("machine", "flags", "level"),
    [
        ("x86_64", "sse2 movbe avx avx2 bmi1 bmi2 f16c fma", "x86-64-v3"),
        ("x86_64", "sse2 movbe avx f16c", ""),
        ("aarch64", "fp asimd", ""),
    ],
)
def test_library_is_compiled_for_avx2_where_the_processor_has_it(
    machine: str, flags: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(library, "CPUINFO", cpuinfo)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert library.level() == level
