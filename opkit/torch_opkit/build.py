"""The parts of a native build, for a `setup.py` of a library with many kernels; for a few, `extension` is enough."""

from torch_opkit._build.architectures import gencode as gencode
from torch_opkit._build.compiler import BuildError as BuildError
from torch_opkit._build.compiler import Toolchain as Toolchain
from torch_opkit._build.compiler import cxx as cxx
from torch_opkit._build.compiler import nvcc as nvcc
from torch_opkit._build.compiler import torch_folder as torch_folder

__all__ = ["BuildError", "Toolchain", "cxx", "gencode", "nvcc", "torch_folder"]
