"""Ahead-of-time builds: the extension that a `setup.py` names."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchcommodity.opkit._build.flags import ARCHITECTURES, DEVICE, HOST, gencode

if TYPE_CHECKING:
    from setuptools import Extension

INCLUDE = Path(__file__).parent.parent / "include"


def extension(
    name: str,
    sources: Sequence[str],
    *,
    include: Sequence[str] = (),
    architectures: Sequence[str] = ARCHITECTURES,
    cuda: bool | None = None,
) -> "Extension":
    """A native library on LibTorch's stable ABI: one build for every Python from 3.10 and every torch from 2.10 on.

    Args:
        name: the module that it becomes, "mine._C"; load it with `opkit.native.load`.
        sources: .cpp and .cu files; the .cu files are left out where `cuda` is false.
        include: folders of headers, beside opkit's own.
        architectures: compute capabilities for nvcc.
        cuda: whether to compile .cu files; None: where torch was built for CUDA and nvcc is found.

    Example, a whole `setup.py`::

        from setuptools import setup
        from torch.utils.cpp_extension import BuildExtension
        from torchcommodity import opkit

        setup(ext_modules=[opkit.extension("mine._C", ["mine/square.cpp"])], cmdclass={"build_ext": BuildExtension})
    """
    from torch.utils import cpp_extension

    with_cuda = _cuda_present() if cuda is None else cuda
    chosen = [source for source in sources if with_cuda or not source.endswith(".cu")]
    kind: Any = cpp_extension.CUDAExtension if with_cuda else cpp_extension.CppExtension
    built: Extension = kind(
        name,
        chosen,
        include_dirs=[str(INCLUDE), *(os.path.abspath(folder) for folder in include)],
        extra_compile_args={"cxx": [*HOST], "nvcc": [*DEVICE, *gencode(architectures)]},
        py_limited_api=True,
    )
    return built


def _cuda_present() -> bool:
    import torch

    return torch.version.cuda is not None and shutil.which("nvcc") is not None
