"""Just-in-time builds: sources in, operators out, in seconds; at once when they were built before."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from torchcommodity.opkit import _native as native
from torchcommodity.opkit._build import cache, inline
from torchcommodity.opkit._build.compiler import Recipe, cxx
from torchcommodity.opkit._build.extension import INCLUDE

_LOADED: dict[str, str] = {}  # the key of the build that each namespace came from


def load(
    name: str, sources: Sequence[str | Path], *, flags: Sequence[str] = (), include: Sequence[str | Path] = ()
) -> Any:
    """Build C++ and CUDA files on LibTorch's stable ABI, load the library, and give the operators `torch.ops.<name>`.

    The build is kept under a hash of its sources, their headers, the flags, the compiler and torch, so that it happens
    once; processes that ask for it together build it once.

    Args:
        name: the namespace in which the sources register their operators.
        sources: .cpp and .cu files.
        flags: further options for the compiler.
        include: folders of headers, beside opkit's own.

    Raises:
        BuildError: a source does not compile; the message begins with file, line and source line.
        RuntimeError: another build of this namespace is loaded already; a library cannot be taken out of a process.
    """
    paths = [Path(source).resolve() for source in sources]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"load: sources must be files; got {path}")
    recipe = Recipe(tuple(flags), tuple(Path(folder).resolve() for folder in include))
    key = _key(paths, recipe, name)
    if _LOADED.get(name, key) != key:
        raise RuntimeError(f"load: another build of {name!r} is loaded in this process; start a new one to take it up")
    if name not in _LOADED:
        native.load_library(cache.kept(name, key, lambda workplace, target: recipe.build(paths, workplace, target)))
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
    """The same from source text: C++ functions on `Tensor` become operators of the namespace `name`.

    Args:
        name: the namespace of the operators.
        cpp: C++; `opkit.h` is included and its names are open, so that a function on `Tensor` is all there is to write.
        cuda: CUDA; its functions are declared in `cpp` and called from there. With it the operators also answer on
            CUDA tensors: `cpp` asks `x.is_cuda()`.
        functions: the names of the functions that become operators, with schemas read off their signatures; or a
            mapping from names to schemas, "(Tensor x, int k) -> Tensor".
        flags: further options for the compiler.

    Returns:
        the operators, as attributes. Text that was changed is built and loaded anew, in a namespace of its own.

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
    schemas = inline.schemas(cpp, functions)
    recipe = Recipe(tuple(flags))
    key = _key([], recipe, name, cpp, cuda or "", repr(schemas))
    space = name if _LOADED.get(name, key) == key else f"{name}_{key}"

    def build(workplace: Path, target: Path) -> None:
        text, unit, device = (workplace / file for file in (f"{name}.cpp", "unit.cpp", f"{name}.cu"))
        text.write_text(cpp)
        unit.write_text(inline.translation_unit(text, space, schemas, bool(cuda)))
        if cuda:
            device.write_text(inline.PRELUDE + f'#line 1 "{device}"\n{cuda}\n')
        recipe.build([unit, device] if cuda else [unit], workplace, target)

    if space not in _LOADED:  # a library can be loaded once, wherever the cache may be by now
        native.load_library(cache.kept(space, key, build))
        _LOADED[space] = key
    return SimpleNamespace(**{function: getattr(getattr(torch.ops, space), function) for function in schemas})


def _key(paths: Sequence[Path], recipe: Recipe, *settings: str) -> str:
    commands = " ".join(recipe.compile_command(Path("source.cpp"), Path("target.o")))
    return cache.digest(paths, (INCLUDE, *recipe.include), torch.__version__, cxx(), commands, *settings)
