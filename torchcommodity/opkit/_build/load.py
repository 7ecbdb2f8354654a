"""Just-in-time builds: compile sources into operators, once, and load them from the cache afterwards."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from torchcommodity.opkit import _native as native
from torchcommodity.opkit._build import cache, inline
from torchcommodity.opkit._build.compiler import Toolchain, cxx
from torchcommodity.opkit._build.extension import INCLUDE

_LOADED: dict[str, str] = {}  # namespace -> key of the build that is loaded


def load(
    name: str, sources: Sequence[str | Path], *, flags: Sequence[str] = (), include: Sequence[str | Path] = ()
) -> Any:
    """Build C++ and CUDA files on LibTorch's stable ABI, and load the library.

    Builds are cached under a hash of the sources, their headers, the flags, the compiler and torch. Concurrent
    processes build a library once.

    Args:
        name: the namespace in which the sources register their operators.
        sources: .cpp and .cu files.
        flags: additional compiler flags.
        include: folders of headers, in addition to opkit's own.

    Returns:
        `torch.ops.<name>`.

    Raises:
        BuildError: a source does not compile; the message starts with file, line and source line.
        FileNotFoundError: a source does not exist.
        RuntimeError: another build of this namespace is loaded; a library cannot be unloaded.
    """
    paths = [Path(source).resolve() for source in sources]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"load: sources must be files; got {path}")
    toolchain = Toolchain(tuple(flags), tuple(Path(folder).resolve() for folder in include))
    key = _key(paths, toolchain, name)
    if _LOADED.get(name, key) != key:
        raise RuntimeError(f"load: another build of {name!r} is loaded in this process; restart it to load the new one")
    if name not in _LOADED:
        native.load_library(cache.get_or_build(name, key, lambda folder, out: toolchain.build(paths, folder, out)))
        _LOADED[name] = key
    return getattr(torch.ops, name)


def load_inline(
    name: str,
    cpp: str,
    cuda: str | None = None,
    functions: Sequence[str] | Mapping[str, str] = (),
    *,
    flags: Sequence[str] = (),
) -> SimpleNamespace:
    """Build operators from source text: C++ functions of `Tensor` become operators in the namespace `name`.

    Args:
        name: the namespace of the operators.
        cpp: C++ source. `opkit.h` is included, and its names are available without a prefix.
        cuda: CUDA source. Its functions are declared in `cpp` and called from there, where `x.is_cuda()`; the
            operators are then registered for CUDA tensors too.
        functions: names of the functions to register, with schemas from their signatures; or a mapping from names to
            schemas, "(Tensor x, int k) -> Tensor".
        flags: additional compiler flags.

    Returns:
        The operators, as attributes. Changed text is built and loaded again, in a new namespace.

    Raises:
        BuildError: the source does not compile; the message starts with file, line and source line.
        TypeError: `functions` is empty or a string.
        ValueError: a function is not defined in `cpp`, or its signature has an unsupported type.

    Example:
        >>> from torchcommodity import opkit
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
    schemas = inline.infer_schemas(cpp, functions)
    toolchain = Toolchain(tuple(flags))
    key = _key([], toolchain, name, cpp, cuda or "", repr(schemas))
    namespace = name if _LOADED.get(name, key) == key else f"{name}_{key}"

    def build(folder: Path, target: Path) -> None:
        text, unit, device = (folder / file for file in (f"{name}.cpp", "unit.cpp", f"{name}.cu"))
        text.write_text(cpp)
        unit.write_text(inline.translation_unit(text, namespace, schemas, bool(cuda)))
        if cuda:
            device.write_text(inline.PRELUDE + f'#line 1 "{device}"\n{cuda}\n')
        toolchain.build([unit, device] if cuda else [unit], folder, target)

    if namespace not in _LOADED:  # a library is loaded once, even if the cache folder changes
        native.load_library(cache.get_or_build(namespace, key, build))
        _LOADED[namespace] = key
    return SimpleNamespace(**{function: getattr(getattr(torch.ops, namespace), function) for function in schemas})


def _key(paths: Sequence[Path], toolchain: Toolchain, *settings: str) -> str:
    commands = " ".join(toolchain.compile_command(Path("source.cpp"), Path("target.o")))
    return cache.digest(paths, (INCLUDE, *toolchain.include), torch.__version__, cxx(), commands, *settings)
