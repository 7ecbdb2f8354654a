"""All kernels of a GPU as one source, which nvcc or a C++ compiler compiles in a minute: it reads headers once."""

import os
import shutil
from pathlib import Path

from torch.utils.cpp_extension import include_paths

from native.library import block_text, is_for_both, sources

OPS = Path(__file__).resolve().parents[2] / "torchcommodity" / "ops"
KERNELS = [path for path in sources(cuda=True) if path.suffix == ".cu" or is_for_both(path)]
INCLUDES = [OPS / "_csrc", *include_paths()]


def unity(folder: Path) -> Path:
    """Write a source that includes all headers, then every kernel in a namespace of its own."""
    source = folder / "unity.cu"
    source.write_text(block_text(KERNELS, gpu=True))
    return source


def nvcc() -> str | None:
    """The nvcc on the path, or in the usual folders of a CUDA installation."""
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), *map(str, sorted(Path("/usr/local").glob("cuda-*")))]
    return shutil.which("nvcc") or next(filter(None, (shutil.which(f"{home}/bin/nvcc") for home in homes)), None)
