"""Options of native builds: flags, GPU architectures, the build folder. Fake compilers record their calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_opkit as opkit
from torch_opkit import _native as native
from torch_opkit._build.architectures import gencode

RECORDER = """#!/bin/sh
echo "$(basename "$0") $*" >> {log}
echo "remark of the compiler"
for last; do :; done
: > "$last"
"""
CUDA = ["x.cpp", "x.cu"]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_OPKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Load sources with compilers that only record their arguments; returns the commands of this build."""
    log = tmp_path / "log"
    for compiler in ("c++", "nvcc"):
        script = tmp_path / "bin" / compiler
        script.parent.mkdir(exist_ok=True)
        script.write_text(RECORDER.format(log=log))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for variable in ("CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(native, "load_library", lambda path: None)
    monkeypatch.setitem(opkit.load.__globals__, "_build_and_try", lambda build, *paths: build(*paths))

    def run(sources: list[str], **options: Any) -> list[str]:
        monkeypatch.setitem(opkit.load.__globals__, "_LOADED", {})
        for source in sources:
            (tmp_path / source).touch()
        log.write_text("")
        opkit.load("opkit_options", [tmp_path / source for source in sources], **options)
        return sorted(log.read_text().splitlines(), key=lambda line: (" -shared " in line, line))

    return run


def test_load_gives_each_flag_to_its_compiler(build: Callable[..., list[str]], tmp_path: Path) -> None:
    flags = {"extra_cflags": ["-DFOR_CXX"], "extra_cuda_cflags": ["-DFOR_NVCC"], "extra_ldflags": ["-lm", "-Wl,-z,now"]}
    cxx, nvcc, link = build(CUDA, extra_include_paths=[tmp_path / "headers"], **flags)
    assert [line.split()[0] for line in (cxx, nvcc, link)] == ["c++", "nvcc", "nvcc"]
    assert [("-DFOR_CXX" in line, "-DFOR_NVCC" in line) for line in (cxx, nvcc, link)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert all(f"-I{tmp_path / 'headers'}" in line for line in (cxx, nvcc))
    assert " -lm -Xlinker=-z,now -o " in link
    assert " -lm -Wl,-z,now -o " in build(["x.cpp"], **flags)[-1]


@pytest.mark.parametrize(
    "option",
    [
        {"extra_cflags": ["-DX"]},
        {"extra_cuda_cflags": ["-DX"]},
        {"extra_ldflags": ["-lm"]},
        {"extra_include_paths": ["headers"]},
        {"architectures": ["7.5"]},
        {"build_directory": "builds"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_load_builds_again_with_another_option(
    build: Callable[..., list[str]], option: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(build(CUDA)) == 3
    assert len(build(CUDA, **option)) == 3
    assert build(CUDA) == build(CUDA, **option) == []
    assert bool(list((tmp_path / "builds").rglob("opkit_options.so"))) == ("build_directory" in option)


def test_load_without_cuda_sources_ignores_the_architectures(
    build: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(build(["x.cpp"])) == 2
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "7.5")
    assert build(["x.cpp"], extra_cuda_cflags=["-DX"], verbose=True) == []


def test_load_verbose_prints_the_commands(build: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    build(["x.cpp"], verbose=True)
    output = capsys.readouterr().out
    assert output.count("remark of the compiler") == 2
    assert "/bin/c++ -std=c++20" in output


@pytest.mark.parametrize("option", ["extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths"])
def test_load_rejects_a_string_of_flags(build: Callable[..., list[str]], option: str) -> None:
    with pytest.raises(TypeError, match=rf"load: {option} must be a list of strings, such as \['-O2'\]; got '-O2'"):
        build(["x.cpp"], **{option: "-O2"})


SM_75, SM_80, SM_86 = (f"-gencode=arch=compute_{n},code=sm_{n}" for n in (75, 80, 86))
PTX_75, PTX_80, PTX_86, PTX_90 = (f"-gencode=arch=compute_{n},code=compute_{n}" for n in (75, 80, 86, 90))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7.5", [SM_75]),
        ("7.5;8.0+PTX", [SM_75, SM_80, PTX_80]),
        ("8.0 8.6", [SM_80, SM_86]),
        ("Turing;8.0;7.5", [SM_75, PTX_75, SM_80]),
        ("Ampere", [SM_80, SM_86, PTX_86]),
        ("10.0a", ["-gencode=arch=compute_100a,code=sm_100a"]),
    ],
)
def test_gencode_reads_the_environment_as_torch_does(
    text: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", text)
    assert gencode() == expected
    assert gencode(["8.6"]) == [SM_86]
    from torch.utils import cpp_extension

    assert cpp_extension._get_cuda_arch_flags() == sorted(expected)


def test_gencode_takes_the_gpus_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gencode(flags=["-arch=sm_75"]) == []
    assert gencode()[-1] == PTX_90
    capabilities = [(8, 0), (7, 5), (8, 0)]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_capability", capabilities.__getitem__)
    assert gencode() == [SM_75, SM_80, PTX_80]


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ("sm_75", r'; write "7\.5"'),
        ("86+PTX", r'; write "8\.6\+PTX"'),
        ("turing", r'; did you mean "Turing"\?'),
        ("new", "got 'new'$"),
    ],
)
def test_gencode_rejects_what_is_no_architecture(
    architecture: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=rf"load: architectures must hold compute capabilities.*{message}"):
        gencode([architecture], "load")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", architecture)
    with pytest.raises(ValueError, match=rf"^TORCH_CUDA_ARCH_LIST must hold compute capabilities.*{message}"):
        gencode()


@pytest.mark.parametrize("architectures", ["7.5;8.0", ()])
def test_gencode_takes_a_sequence(architectures: Any) -> None:
    with pytest.raises(TypeError, match=r"load: architectures must be a sequence of compute capabilities"):
        gencode(architectures, "load")


@pytest.mark.parametrize("flag", ["-rdc=true", "-dc", "-dlto"])
def test_load_links_relocatable_device_code_for_the_same_gpus(build: Callable[..., list[str]], flag: str) -> None:
    assert "-gencode" not in build(CUDA, architectures=["7.5", "8.0"])[-1]
    assert f"{SM_75} {SM_80}" in build(CUDA, architectures=["7.5", "8.0"], extra_cuda_cflags=[flag])[-1]


def test_extension_links_relocatable_device_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.utils.cpp_extension.CUDA_HOME", "/opt/cuda")
    plain: Any = opkit.extension("mine._C", CUDA, architectures=("7.5",), cuda=True)
    assert "nvcc_dlink" not in plain.extra_compile_args
    built: Any = opkit.extension("mine._C", CUDA, architectures=("7.5",), cuda=True, extra_cuda_cflags=["-rdc=true"])
    assert built.extra_compile_args["nvcc_dlink"] == ["-dlink", SM_75, "-rdc=true", "-lcudadevrt"]


def test_extension_gives_each_flag_to_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.utils.cpp_extension.CUDA_HOME", "/opt/cuda")
    flags = {"extra_cflags": ["-DFOR_CXX"], "extra_cuda_cflags": ["-DFOR_NVCC"], "extra_ldflags": ["-lm"]}
    built: Any = opkit.extension("mine._C", CUDA, architectures=("7.5",), cuda=True, **flags)
    assert built.extra_compile_args["cxx"][-1] == "-DFOR_CXX"
    assert built.extra_compile_args["nvcc"][-2:] == [SM_75, "-DFOR_NVCC"]
    assert built.extra_link_args == ["-lm"]
