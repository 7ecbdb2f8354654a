"""Ahead-of-time builds: the extension for a `setup.py`."""

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch_opkit._build.architectures import gencode
from torch_opkit._build.compiler import CXX_FLAGS, INCLUDE, NVCC_FLAGS, REGISTRATION, is_relocatable

if TYPE_CHECKING:
    from setuptools import Extension


def extension(
    name: str,
    sources: Sequence[str],
    *,
    extra_cflags: Sequence[str] = (),
    extra_cuda_cflags: Sequence[str] = (),
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str] = (),
    architectures: Sequence[str] | None = None,
    cuda: bool | None = None,
) -> "Extension":
    """Extension module on LibTorch's stable ABI: one build for every Python from 3.10 and every torch from 2.10 on.

    Args:
        name: name of the module, "mine._C"; `opkit.load_native_library(Path(__file__).parent)` in mine/__init__.py loads it.
        sources: .cpp and .cu files; .cu files are ignored without `cuda`.
        extra_cflags: additional flags of the C++ compiler.
        extra_cuda_cflags: additional flags of nvcc.
        extra_ldflags: additional flags of the linker.
        extra_include_paths: folders of headers, in addition to opkit's own.
        architectures: GPUs to compile for, as in `load`.
        cuda: compile .cu files; default: True if torch was built for CUDA and nvcc is installed.

    Returns:
        A setuptools `Extension`, to be built by torch's `BuildExtension`.

    Example:
        A complete `setup.py`::

            from setuptools import setup
            from torch.utils.cpp_extension import BuildExtension
            import torch_opkit as opkit

            setup(ext_modules=[opkit.extension("mine._C", ["mine/square.cpp"])], cmdclass={"build_ext": BuildExtension})
    """
    import torch
    from torch.utils import cpp_extension

    if isinstance(sources, str):
        raise TypeError(f"extension: sources must be a list of files, such as [{sources!r}]; got {sources!r}")
    available = torch.version.cuda is not None and shutil.which("nvcc") is not None
    with_cuda = available if cuda is None else cuda
    extension_class: Any = cpp_extension.CUDAExtension if with_cuda else cpp_extension.CppExtension
    gpus = gencode(architectures, "extension", extra_cuda_cflags) if with_cuda else []
    relocatable = is_relocatable(extra_cuda_cflags)
    device_link = {"nvcc_dlink": ["-dlink", *gpus, *extra_cuda_cflags, "-lcudadevrt"]} if relocatable else {}
    result: Extension = extension_class(
        name,
        [source for source in sources if with_cuda or not source.endswith(".cu")],
        include_dirs=[str(INCLUDE), *(os.path.abspath(folder) for folder in extra_include_paths)],
        extra_compile_args={
            "cxx": [*CXX_FLAGS, *REGISTRATION, *extra_cflags],
            "nvcc": [*NVCC_FLAGS, *REGISTRATION, *gpus, *extra_cuda_cflags],
            **device_link,
        },
        extra_link_args=[*extra_ldflags],
        py_limited_api=True,
    )
    return result
