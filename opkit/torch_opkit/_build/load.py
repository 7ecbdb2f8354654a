"""Just-in-time builds: compile sources into operators, once, and load them from the cache afterwards."""

import functools
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from torch_opkit import _native as native
from torch_opkit._build import cache, inline
from torch_opkit._build.compiler import INCLUDE, REGISTRATION, BuildError, Toolchain, make_toolchain

_LOADED: dict[str, str] = {}  # namespace -> key of the build that is loaded


def load(
    name: str,
    sources: Sequence[str | Path],
    *,
    extra_cflags: Sequence[str] = (),
    extra_cuda_cflags: Sequence[str] = (),
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str | Path] = (),
    architectures: Sequence[str] | None = None,
    build_directory: str | Path | None = None,
    verbose: bool = False,
) -> Any:
    """Build C++ and CUDA files on LibTorch's stable ABI, and load the library.

    Builds are cached under a hash of the sources, their headers, the flags, the GPU architectures, the compiler and
    torch. Concurrent processes build a library once.

    Args:
        name: the namespace in which the sources register their operators.
        sources: .cpp and .cu files, or one of them. nvcc compiles .cu files.
        extra_cflags: additional flags of the C++ compiler, for .cpp files only.
        extra_cuda_cflags: additional flags of nvcc, for .cu files only.
        extra_ldflags: additional flags of the linker, as for the C++ compiler: "-lm", "-Wl,-rpath,/opt/lib".
        extra_include_paths: folders of headers, in addition to opkit's own.
        architectures: GPUs to compile for, as compute capabilities or names: ("7.5", "8.0+PTX"), ("Turing",). "+PTX"
            adds code that newer GPUs can compile. Default: the environment variable TORCH_CUDA_ARCH_LIST
            ("7.5;8.0+PTX"), else the GPUs that torch sees, else "8.0" and "9.0+PTX".
        build_directory: folder of the cache; default: the environment variable TORCH_OPKIT_CACHE, else a folder in
            the user's cache.
        verbose: print the commands and what the compilers write.

    Returns:
        `torch.ops.<name>`.

    Raises:
        BuildError: a source does not compile; the message starts with file, line and source line. Or loading the library
            ends a process.
        FileNotFoundError: a source does not exist.
        RuntimeError: another build of this namespace is loaded; a library cannot be unloaded.
        TypeError: flags, folders or architectures are one string instead of a sequence of them.
        ValueError: `name` is no identifier, a schema has a mistake or other types than the C++ function, a source
            includes torch/extension.h, or an architecture is neither a compute capability nor a name.
    """
    _check_name("load", name)
    paths = [Path(source).resolve() for source in ([sources] if isinstance(sources, (str, Path)) else sources)]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"load: sources must be files; got {path}")
    inline.check_stable("load", {path.name: path.read_text(errors="replace") for path in paths})
    toolchain = make_toolchain(
        "load",
        any(path.suffix == ".cu" for path in paths),
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        architectures=architectures,
        verbose=verbose,
    )
    key = _key(paths, toolchain, name)
    if _LOADED.get(name, key) != key:
        raise RuntimeError(f"load: another build of {name!r} is loaded in this process; restart it to load the new one")
    return _load_once(name, key, build_directory, functools.partial(toolchain.build, paths))


def load_inline(
    name: str,
    cpp: str,
    cuda: str | None = None,
    functions: Sequence[str] | Mapping[str, str] = (),
    *,
    extra_cflags: Sequence[str] = (),
    extra_cuda_cflags: Sequence[str] = (),
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str | Path] = (),
    architectures: Sequence[str] | None = None,
    build_directory: str | Path | None = None,
    verbose: bool = False,
) -> SimpleNamespace:
    """Build operators from source text: C++ functions of `Tensor` become operators in the namespace `name`.

    Args:
        name: the namespace of the operators.
        cpp: C++ source. `opkit.h` is included, and its names are available without a prefix.
        cuda: CUDA source. Its functions are declared in `cpp` and called from there, where `x.is_cuda()`; the
            operators are then registered for CUDA tensors too.
        functions: names of the functions to register, with schemas from their signatures; or a mapping from names to
            schemas, "(Tensor x, int k) -> Tensor", or to docstrings, as in torch's own `load_inline`.
        extra_cflags: additional flags of the C++ compiler, for `cpp` only.
        extra_cuda_cflags: additional flags of nvcc, for `cuda` only.
        extra_ldflags: additional flags of the linker, as for the C++ compiler.
        extra_include_paths: folders of headers, in addition to opkit's own.
        architectures: GPUs to compile for, as in `load`.
        build_directory: folder of the cache, as in `load`.
        verbose: print the commands and what the compilers write.

    Returns:
        The operators, as attributes. Changed text is built and loaded again, in a new namespace.

    Raises:
        BuildError: the source does not compile; the message starts with file, line and source line.
        TypeError: `cpp` is no string, `functions` is empty or a string or holds other objects, or flags, folders or
            architectures are one string.
        ValueError: `name` is no identifier, a function is not defined in `cpp`, its signature has an unsupported type,
            a schema has a mistake or other types than the C++ function, the source includes torch/extension.h, or an
            architecture is neither a compute capability nor a name.

    Example:
        >>> import torch_opkit as opkit
        >>> source = '''
        ... Tensor twice(const Tensor& x) {
        ...   Tensor y = torch::stable::empty_like(x);
        ...   const float* from = x.const_data_ptr<float>();
        ...   float* to = y.mutable_data_ptr<float>();
        ...   for (int64_t i = 0; i < x.numel(); ++i) to[i] = 2 * from[i];
        ...   return y;
        ... }'''
        >>> twice = opkit.load_inline("doctest", source, functions=["twice"]).twice  # doctest: +SKIP
    """
    _check_name("load_inline", name)
    schemas = inline.infer_schemas(cpp, functions)
    inline.check_stable("load_inline", {"cpp": cpp, "cuda": cuda or ""})
    toolchain = make_toolchain(
        "load_inline",
        bool(cuda),
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        architectures=architectures,
        verbose=verbose,
    )
    key = _key([], toolchain, name, cpp, cuda or "", repr(schemas))
    namespace = name if _LOADED.get(name, key) == key else f"{name}_{key}"

    def build(folder: Path, target: Path) -> None:
        sources = inline.write_sources(folder, name, namespace, cpp, cuda, schemas)
        toolchain.without_path(folder).build(sources, folder, target)

    operators = _load_once(namespace, key, build_directory, build)
    for function, text in functions.items() if isinstance(functions, Mapping) else ():
        if not inline.is_schema(text):
            getattr(operators, function).__doc__ = text
    return SimpleNamespace(**{function: getattr(operators, function) for function in schemas})


def _load_once(
    namespace: str, key: str, build_directory: str | Path | None, build: Callable[[Path, Path], None]
) -> Any:
    """The operators of a namespace, whose library is loaded once per process, even if the cache folder changes."""
    if namespace not in _LOADED:
        safely = functools.partial(_build_and_try, build)
        native.load_library(cache.get_or_build(cache.cache_folder(build_directory), namespace, key, safely))
        _LOADED[namespace] = key
    return getattr(torch.ops, namespace)


_TRIAL = """
import sys, torch
print("ready", flush=True)
try:
    torch.ops.load_library(sys.stdin.readline().strip())
except OSError:
    pass  # it does not load; this process says why
print("loaded", flush=True)
"""


def _build_and_try(build: Callable[[Path, Path], None], folder: Path, target: Path) -> None:
    """Build a library and load it in another process first: what runs while it is loaded can end the process.

    The other process imports torch while the compilers run.
    """
    command, pipe = [sys.executable, "-c", _TRIAL], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            build(folder, target)
            output, errors = process.communicate(f"{target}\n", timeout=60)
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            output, errors = "ready", "it takes more than 60 seconds"
    if output.split() == ["ready"]:
        code = process.returncode
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise BuildError(
            f"{target.name}: loading the library must not end the process; got {end}: look for variables outside of "
            f"functions whose value calls a function\n{errors.strip()}"
        )


def _check_name(operation: str, name: object) -> None:
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name)):
        raise ValueError(f"{operation}: name must be an identifier, the namespace of the operators; got {name!r}")


def _key(paths: Sequence[Path], toolchain: Toolchain, *texts: str) -> str:
    commands = [" ".join(command) for command in toolchain.commands()]
    return cache.digest([*paths, Path(REGISTRATION[1])], (INCLUDE, *toolchain.include), torch.__version__, *commands, *texts)
