"""`opkit.load` and `load_inline`: builds from text and files, the cache, concurrent and interrupted builds, errors."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_opkit as opkit
from torch_opkit import _native as native
from torch_opkit._build import cache, compiler, inline

SQUARE = """
Tensor square(const Tensor& x_, double factor = 1.0) {
  const Tensor x = contiguous(x_);
  Tensor y = empty_like(x);
  dispatch<float, double>(x, "square", [&]<typename scalar_t>() {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    parallel(x.numel(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] * from[i] * scalar_t(factor);
    });
  });
  return y;
}
"""
PLAIN = "Tensor {name}(const Tensor& x) {{ return empty_like(x); }}"
FILE = """
#include "factor.h"
#include "opkit.h"
using namespace opkit;
Tensor scaled(const Tensor& x) {
  Tensor y = torch::stable::clone(x);
  auto at = accessor<double, 2>(y);
  for (int64_t i = 0; i < y.size(0); ++i) at[i][0] *= kFactor;
  return y;
}
STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("scaled(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("scaled", TORCH_BOX(&scaled)); }
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_OPKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_load_inline_builds_an_operator(empty_cache: Path) -> None:
    built = opkit.load_inline("inline_square", SQUARE, functions=["square"])
    x = torch.arange(6, dtype=torch.double).view(2, 3).mT
    assert torch.equal(built.square(x, 3.0), 3 * x * x)
    assert torch.equal(built.square(x.float()), (x * x).float())
    with pytest.raises(RuntimeError, match="square: has no kernel for Long") as caught:
        built.square(x.long())
    assert "/inline_square.cpp" not in str(caught.value)  # the folder of the build is gone
    library = built.square.default._schema
    assert str(library) == "inline_square::square(Tensor x, float factor=1.) -> Tensor"
    assert [path.suffix for path in empty_cache.rglob("*.so")] == [".so"]


def test_op_uses_a_kernel_from_load_inline() -> None:
    opkit.load_inline(
        "inline_record", SQUARE.replace(", double factor = 1.0", "").replace("scalar_t(factor)", "2"), None, ["square"]
    )

    def reference(x: torch.Tensor) -> torch.Tensor:
        return x * x

    operator = opkit.Op("inline_record::square", reference=reference)
    assert operator.devices == ("cpu",)
    assert operator(torch.ones(2)).equal(torch.full((2,), 2.0))


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_accepts_a_function_without_tensors() -> None:
    text = (
        "int64_t twice(int64_t k) { return 2 * k; }\nTensor first(const Tensor& x) { return torch::stable::clone(x); }"
    )
    built = opkit.load_inline("inline_number", text, functions=["twice", "first"])
    assert built.twice(21) == 42
    with pytest.raises(NotImplementedError, match=r"inline_number::first.*Meta"):
        built.first(torch.ones(2, device="meta"))


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_builds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PLAIN.format(name="copy")
    opkit.load_inline("inline_once", text, functions=["copy"])
    monkeypatch.setenv("CXX", "/nonexistent/compiler")
    with pytest.raises(opkit.BuildError, match="no such compiler"):
        opkit.load_inline("inline_once", text + "\n", functions=["copy"])
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(compiler.Toolchain, "build", None)
    opkit.load_inline("inline_once", text, functions=["copy"])


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_loads_changed_text_separately() -> None:
    first = opkit.load_inline("inline_changed", SQUARE, functions=["square"])
    second = opkit.load_inline("inline_changed", SQUARE.replace("from[i] * from[i]", "from[i]"), functions=["square"])
    assert (first.square(torch.tensor([3.0])).item(), second.square(torch.tensor([3.0])).item()) == (9, 3)


def test_build_error_starts_with_the_source_line() -> None:
    wrong = SQUARE.replace("to[i] =", "to[i] = nothing *")
    with pytest.raises(opkit.BuildError) as caught:
        opkit.load_inline("inline_wrong", wrong, functions=["square"])
    location, line, *_ = str(caught.value).splitlines()
    assert location.startswith("inline_wrong.cpp:9:")
    assert "nothing" in location
    assert "to[i] = nothing * from[i]" in line


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (["absent"], "must be defined in cpp; got 'absent'"),
        ("square", "must be a list of function names"),
        ([], "must be a list of function names"),
    ],
)
def test_load_inline_rejects_undefined_functions(functions: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        opkit.load_inline("inline_none", SQUARE, functions=functions)  # type: ignore[arg-type]  # deliberate


@pytest.mark.parametrize(
    ("name", "cpp", "message"),
    [
        ("inline-none", SQUARE, "name must be an identifier, .*; got 'inline-none'"),
        ("inline_none", [SQUARE], "cpp must be the text of a C.. source; got list"),
    ],
)
def test_load_inline_rejects_other_names_and_sources(name: str, cpp: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        opkit.load_inline(name, cpp, functions=["square"])


def test_load_rejects_another_name(tmp_path: Path) -> None:
    source = tmp_path / "square.cpp"
    source.write_text(SQUARE)
    with pytest.raises(ValueError, match=r"load: name must be an identifier, .*; got 'my kernels'"):
        opkit.load("my kernels", [source])


def test_load_inline_infers_schemas() -> None:
    text = """std::tuple<Tensor, Tensor> f(const Tensor& x, const std::optional<Tensor>& y_,
        int64_t k, bool up, const std::vector<int64_t>& sizes) { }"""
    assert (
        inline.infer_schemas(text, ["f"])["f"]
        == "(Tensor x, Tensor? y, int k, bool up, int[] sizes) -> (Tensor, Tensor)"
    )
    text = "void f(const Tensor& x, Tensor& state, double factor) {"
    assert inline.infer_schemas(text, ["f"])["f"] == "(Tensor x, Tensor(a1!) state, float factor) -> ()"
    with pytest.raises(ValueError, match=r"types in f must be one of Tensor, .*; got 'float'"):
        inline.infer_schemas("Tensor f(float x) {", ["f"])


@pytest.mark.parametrize("text", ['#include "factor.h"', "#include <factor.h>"])
def test_key_follows_the_headers_that_a_text_includes(text: str, tmp_path: Path) -> None:
    header = tmp_path / "factor.h"
    header.write_text("constexpr double kFactor = 5;")
    first = cache.digest([], [tmp_path], text)
    header.write_text("constexpr double kFactor = 6;")
    assert cache.digest([], [tmp_path], text) != first


@pytest.mark.slow
@pytest.mark.compile
def test_load_rebuilds_after_a_header_change(tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("constexpr double kFactor = 5;")
    source = tmp_path / "scaled.cpp"
    source.write_text(FILE.replace("NAMESPACE", "opkit_files"))
    operators = opkit.load("opkit_files", [source])
    assert operators.scaled(torch.ones(2, 2, dtype=torch.double)).tolist() == [[5, 1], [5, 1]]
    opkit.load("opkit_files", [source])
    (tmp_path / "factor.h").write_text("constexpr double kFactor = 6;")
    with pytest.raises(RuntimeError, match="another build of 'opkit_files' is loaded in this process"):
        opkit.load("opkit_files", [source])
    with pytest.raises(FileNotFoundError, match="sources must be files"):
        opkit.load("opkit_files", [tmp_path / "absent.cpp"])


PROCESS = """
import sys, torch
import torch_opkit as opkit
text = "Tensor same(const Tensor& x) { return torch::stable::clone(x); }"
print(opkit.load_inline("inline_race", text, functions=["same"]).same(torch.ones(2)).sum().item())
"""


def start() -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "ignore", "-c", PROCESS]
    environment = os.environ | {"TORCHCOMMODITY_NATIVE": "0"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_builds_once_for_eight_processes(empty_cache: Path) -> None:
    processes = [start() for _ in range(8)]
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["2.0"] * 8
    assert len(list(empty_cache.rglob("*.so"))) == 1
    assert not list(empty_cache.rglob("building-*"))


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_after_an_interrupted_build(empty_cache: Path) -> None:
    process = start()
    while not list(empty_cache.rglob("building-*")) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not list(empty_cache.rglob("*.so"))
    assert start().communicate(timeout=120)[0].strip() == "2.0"


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("aoti_torch_from_the_future", "it was built for a newer torch"),
        ("_ZN3c105ErrorC1Ev_of_another", "it was built against another torch's C"),
        ("aoti_torch_get_current_cuda_stream_", "it was built for CUDA, this torch was not"),
    ],
)
def test_load_library_explains_a_missing_symbol(tmp_path: Path, symbol: str, message: str) -> None:
    source = tmp_path / "other.cpp"
    source.write_text(f'extern "C" int {symbol}(); static int x = {symbol}(); extern "C" int used() {{ return x; }}')
    compiler.Toolchain().build([source], tmp_path, tmp_path / "other.so")
    with pytest.raises(OSError, match=rf"other.so does not load with torch .*: {message}"):
        native.load_library(tmp_path / "other.so")


def test_cache_folder_follows_the_environment(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.cache_folder() == empty_cache
    monkeypatch.delenv("TORCH_OPKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.cache_folder() == Path("/elsewhere/torch_opkit")


def test_library_that_others_may_replace_is_not_loaded(tmp_path: Path) -> None:
    planted = tmp_path / "key" / f"mine{'.dylib' if sys.platform == 'darwin' else '.so'}"
    planted.parent.mkdir()
    planted.touch()
    assert cache.get_or_build(tmp_path, "mine", "key", lambda folder, target: None) == planted
    for path, mode in ((planted, 0o666), (planted.parent, 0o777), (tmp_path, 0o777)):
        before = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(
            PermissionError, match=f"{path}: the cache of native libraries must be yours.*mode {mode:o}"
        ):
            cache.get_or_build(tmp_path, "mine", "key", lambda folder, target: None)
        path.chmod(before)
