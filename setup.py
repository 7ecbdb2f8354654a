"""The native library: every ops/**/*.cpp (and *.cu where CUDA is) in one abi3, stable-ABI shared object."""

import os
import runpy
import shutil
from glob import glob

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

BUILD = "torchcommodity/opkit/_build"  # run as files: the package itself needs what is built here
FLAGS = runpy.run_path(f"{BUILD}/flags.py")
gencode = runpy.run_path(f"{BUILD}/architectures.py")["gencode"]
CUDA_ASKED = os.environ.get("TORCHCOMMODITY_CUDA", "1" if CUDA_HOME and torch.version.cuda else "0") == "1"


def extensions():
    if not (os.environ.get("CXX") or shutil.which("c++")):
        return []  # without a compiler every operator runs through its reference, slower
    cuda = glob("torchcommodity/ops/**/*.cu", recursive=True) if CUDA_ASKED else []
    return [
        (CUDAExtension if cuda else CppExtension)(
            "torchcommodity._C",
            sorted(glob("torchcommodity/ops/**/*.cpp", recursive=True) + cuda),
            include_dirs=[os.path.abspath("torchcommodity/ops/_csrc")],
            extra_compile_args={
                "cxx": [*FLAGS["CXX_FLAGS"]],
                "nvcc": [*FLAGS["NVCC_FLAGS"], *(gencode() if cuda else ())],
            },
            py_limited_api=True,
        )
    ]


class Build(BuildExtension):
    """An operator's .cpp and .cu have one stem: each gets an object file of its own."""

    def build_extensions(self):
        self.build_temp = os.path.abspath("build/temp")  # an editable install would compile everything anew each time
        named = self.compiler.object_filenames

        def object_filenames(sources, *args, **kwargs):
            objects = zip(sources, named(sources, *args, **kwargs))
            return [f"{name[:-2]}.cuda.o" if source.endswith(".cu") else name for source, name in objects]

        self.compiler.object_filenames = object_filenames
        super().build_extensions()


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
