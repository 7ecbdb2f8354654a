"""What `make wheel` refuses in a library, on small libraries of the compiler of this machine."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

RELEASE = Path(__file__).resolve().parents[2] / "release"
Build = Callable[..., Path]


@pytest.fixture(autouse=True)
def _release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(RELEASE)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A library of one C function that calls another."""

    def build(call: str, *flags: str) -> Path:
        source, library = tmp_path / "source.c", tmp_path / "_C.so"
        source.write_text(f"void {call}(); void run() {{ {call}(); }}")
        folder = Path(torch.__file__).parent / "lib"
        options = [
            "-shared",
            "-fPIC",
            f"-L{folder}",
            "-Wl,--no-as-needed",
            "-ltorch_cpu",
            "-Wl,--allow-shlib-undefined",
        ]
        subprocess.run(["cc", str(source), *options, *flags, "-o", str(library)], check=True)
        return library

    return build


def faults(library: Path) -> str:
    from audit import check_library
    from platforms import PLATFORMS

    try:
        check_library(library, PLATFORMS[0])
    except RuntimeError as error:
        return str(error)
    return ""


def test_library_that_needs_the_stable_abi_only_passes(build: Build) -> None:
    assert not faults(build("aoti_torch_get_data_ptr"))


@pytest.mark.parametrize(
    ("call", "flags", "fault"),
    [
        ("_ZN3c105Error4whatEv", (), "it needs the C++ or Python symbol _ZN3c105Error4whatEv"),
        ("PyErr_Occurred", (), "it needs the C++ or Python symbol PyErr_Occurred"),
        ("torch_new_in_a_later_version", (), "it needs torch_new_in_a_later_version, which the oldest torch does not"),
        ("aoti_torch_get_data_ptr", ("-Wl,-rpath,/opt/torch",), "it has the run path /opt/torch"),
        ("aoti_torch_get_data_ptr", ("-lstdc++",), "it loads libstdc++.so.6"),
        (
            "aoti_torch_get_data_ptr",
            ("-include", "place.h"),
            f"it names the folder {sys.prefix}",
        ),
    ],
)
def test_library_that_would_not_run_everywhere(
    call: str, flags: tuple[str, ...], fault: str, build: Build, tmp_path: Path
) -> None:
    (tmp_path / "place.h").write_text(f'const char place[] = "{sys.prefix}/include";')
    assert fault in faults(build(call, f"-I{tmp_path}", *flags))


def test_stable_functions_are_those_of_the_oldest_torch() -> None:
    from platforms import stable_functions

    functions = stable_functions()
    assert "aoti_torch_get_data_ptr" in functions
    assert len(functions) == len(set(functions)) > 100
