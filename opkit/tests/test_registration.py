"""Mistakes in schemas, registrations and static variables of a native source are Python exceptions, in words."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_opkit as opkit

COPY = "Tensor copy(const Tensor& x) { return torch::stable::clone(x); }\n"
FACTOR = "double factor(const Tensor& x, double k) { return k; }\n"
FILE = '#include "opkit.h"\nusing namespace opkit;\n' + COPY
DEFINITION = 'STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("copy(Tensor x) -> Tensor"); }\n'
KERNEL = 'STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("copy", TORCH_BOX(&copy)); }\n'


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_OPKIT_CACHE", str(tmp_path / "cache"))


def load(folder: Path, namespace: str, text: str) -> Any:
    source = folder / f"{namespace}.cpp"
    source.write_text(text.replace("NAMESPACE", namespace))
    return opkit.load(namespace, [source])


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_takes_docstrings_as_torch_does() -> None:
    built = opkit.load_inline("registration_doc", COPY, functions={"copy": "returns a copy of x"})
    assert built.copy(torch.ones(2)).tolist() == [1, 1]
    assert built.copy.__doc__ == "returns a copy of x"
    assert str(built.copy.default._schema) == "registration_doc::copy(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("cpp", "functions", "message"),
    [
        (COPY, {"copy": "(Tensor x) -> Tensr"}, r'got "copy\(Tensor x\) -> Tensr": unknown type specifier'),
        (COPY, {"copy": "(Tensor x -> Tensor"}, r'got "copy\(Tensor x -> Tensor": expected \)'),
        (COPY, {"copy": "(Tensr x) -> Tensor"}, r'got "copy\(Tensr x\) -> Tensor": unknown type specifier'),
        (COPY.replace("x)", "x, double k = 1.0f)", 1), ["copy"], r'"copy\(Tensor x, float k=1.0f\) -> Tensor": exp'),
        (COPY, {"copy": 3}, "must be names of C.. functions, or map them to docstrings or schemas; got 'copy': 3"),
        (COPY, {"copy it": ""}, "functions must be names of C.. functions, .*; got 'copy it': ''"),
        ("#include <torch/extension.h>\n" + COPY, ["copy"], r"<torch/extension.h> in cpp; see the guide on porting"),
    ],
)  # fmt: skip
def test_load_inline_refuses_a_wrong_schema_before_it_builds(cpp: str, functions: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"load_inline: .*{message}"):
        opkit.load_inline("registration_none", cpp, functions=functions)


@pytest.mark.parametrize("header", ["torch/extension.h", "torch/library.h", "ATen/ATen.h", "pybind11/pybind11.h"])
def test_load_names_the_guide_on_porting(tmp_path: Path, header: str) -> None:
    source = tmp_path / "old.cpp"
    source.write_text(f'#include <{header}>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f); }}')
    with pytest.raises(
        ValueError, match=rf"load: .* got <{header}> in old.cpp; see the guide on porting, https.*porting"
    ):
        opkit.load("registration_old", [source])


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_refuses_other_types_than_the_schema() -> None:
    functions = {
        "double a(const Tensor& x, double k)": ("(Tensor x, int k) -> float", "Tensor, float -> float"),
        "double b(const Tensor& x, double k)": ("(Tensor x) -> float", "Tensor, float -> float"),
        "double c(const Tensor& x, double k)": ("(Tensor x, float k) -> (float, float)", "Tensor, float -> float"),
        "float d(const Tensor& x, int k)": ("(Tensor x, int k) -> float", "Tensor, 32-bit int -> 32-bit float"),
        "double e(std::optional<double> k)": ("(float k) -> float", "Optional[float] -> float"),
        "double f(std::vector<double> k)": ("(int[] k) -> float", "List[float] -> float"),
        "bool g(bool k)": ("(int k) -> bool", "bool -> bool"),
    }
    cpp = "\n".join(f"{function} {{ return 0; }}" for function in functions)
    schemas = {function.split()[1][0]: schema for function, (schema, _) in functions.items()}
    with pytest.raises(ValueError, match=r"registration_types::a: the C.. function must have the types") as caught:
        opkit.load_inline("registration_types", cpp, functions=schemas)
    lines = str(caught.value).splitlines()
    assert sorted(line.split("got ")[1] for line in lines) == sorted(types for _, types in functions.values())


@pytest.mark.slow
@pytest.mark.compile
def test_load_inline_accepts_the_types_that_it_cannot_infer() -> None:
    text = """std::tuple<std::vector<Tensor>, std::optional<Tensor>, int64_t, bool> f(
        torch::headeronly::HeaderOnlyArrayRef<Tensor> xs, const std::optional<std::vector<double>>& k,
        std::string_view word, std::optional<torch::headeronly::ScalarType> dtype) {
      return {std::vector<Tensor>(xs.begin(), xs.end()), std::nullopt, int64_t(k->size()), word == "yes"};
    }"""
    schema = '(Tensor[] xs, float[]? k, str word="yes", ScalarType? dtype=None) -> (Tensor[], Tensor?, int, bool)'
    built = opkit.load_inline("registration_lists", text, functions={"f": schema})
    assert built.f([torch.ones(1)], [1.0, 2.0]) == ([torch.ones(1)], None, 2, True)


@pytest.mark.slow
@pytest.mark.compile
def test_load_refuses_a_wrong_schema_and_takes_the_corrected_file(tmp_path: Path) -> None:
    right = FILE + DEFINITION + KERNEL
    with pytest.raises(ValueError, match=r"registration_file::copy: the schema must be .*: unknown type specifier"):
        load(tmp_path, "registration_file", right.replace("-> Tensor", "-> Tensr"))
    with pytest.raises(ValueError, match=r"registration_file::copy: the C.. function must have the types"):
        load(tmp_path, "registration_file", right.replace("copy(Tensor x)", "copy(Tensor x, int k)"))
    assert load(tmp_path, "registration_file", right).copy(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"STABLE_TORCH_LIBRARY\(registration_file\): .* no other block declares"):
        load(tmp_path, "registration_twice", (FILE + DEFINITION).replace("NAMESPACE", "registration_file"))


@pytest.mark.slow
@pytest.mark.compile
def test_load_explains_each_wrong_registration(tmp_path: Path) -> None:
    text = (
        DEFINITION
        + """
    STABLE_TORCH_LIBRARY_FRAGMENT(NAMESPACE, m) { m.def("copy(Tensor x) -> Tensor").def("bare"); }
    STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPUU, m) { m.impl("copy", TORCH_BOX(&copy)); }
    STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("other::copy", TORCH_BOX(&copy)); }
    """
    )
    with pytest.raises(ValueError, match="registration_wrong") as caught:
        load(tmp_path, "registration_wrong", FILE + text)
    expected = [
        "registration_wrong::copy: an operator must be declared once; got a second declaration",
        "registration_wrong::bare: the schema must be as in .* only the operator name was given",
        r"STABLE_TORCH_LIBRARY_IMPL\(registration_wrong\): the block must have a dispatch key, such as .*; got CPUU",
        "m.impl must name an operator of the namespace registration_wrong; got 'other::copy'",
    ]
    assert [bool(re.search(pattern, str(caught.value))) for pattern in expected] == [True] * 4


@pytest.mark.slow
@pytest.mark.compile
def test_load_after_the_record_says_the_order(tmp_path: Path) -> None:
    def reference(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    opkit.Op("registration_late::copy", reference=reference)
    with pytest.raises(ValueError, match=r"registration_late::copy: an operator must be declared once.*before the Op"):
        load(tmp_path, "registration_late", FILE + DEFINITION + KERNEL)


@pytest.mark.slow
@pytest.mark.compile
def test_load_warns_of_a_kernel_without_a_schema(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"names registration_typo::coppy, which no m.def declares; .*typo::copy$"):
        load(tmp_path, "registration_typo", FILE + DEFINITION + KERNEL.replace('"copy"', '"coppy"'))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize(
    ("value", "end"),
    [
        ('[] { STD_TORCH_CHECK(false, "no table"); return 1; }()', "SIGABRT(.|\n)*no table"),
        ("*static_cast<volatile int*>(nullptr)", "SIGSEGV"),
        ("(std::exit(0), 1)", "exit code 0"),
    ],
)
def test_load_inline_survives_static_variables_that_end_a_process(value: str, end: str) -> None:
    text = f"#include <cstdlib>\n{COPY}static int table = {value};"
    with pytest.raises(
        opkit.BuildError, match=f"registration_static.so: loading the library must not end.*; got {end}"
    ):
        opkit.load_inline("registration_static", text, functions=["copy"])


@pytest.mark.slow
@pytest.mark.compile
def test_kernel_that_throws_raises_an_exception() -> None:
    text = """Tensor number(const Tensor& x) { throw 5; }
    Tensor in_parallel(const Tensor& x) {
      parallel(1 << 20, 1, [&](int64_t begin, int64_t end) { OPKIT_CHECK(false, "wrong at ", begin); });
      return empty_like(x);
    }
    int64_t axis(const Tensor& x) { return x.size(7); }"""
    built = opkit.load_inline("registration_throw", text, functions=["number", "in_parallel", "axis"])
    for function in (built.number, built.in_parallel, built.axis):
        with pytest.raises(RuntimeError):
            function(torch.ones(1))


@pytest.mark.slow
@pytest.mark.compile
def test_build_error_ends_the_process_that_would_load_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = []
    start = subprocess.Popen

    def record(command: Any, *args: Any, **kwargs: Any) -> Any:
        processes.append(start(command, *args, **kwargs))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", record)
    with pytest.raises(opkit.BuildError):
        opkit.load_inline("registration_unbuilt", COPY.replace("clone", "cloned"), functions=["copy"])
    assert all(process.poll() is not None for process in processes)
