"""All .cu files as one source, which nvcc or a C++ compiler compiles in a minute, since headers are read once."""

import os
import re
import shutil
from pathlib import Path

from torch.utils.cpp_extension import include_paths

OPS = Path(__file__).resolve().parents[2] / "torchcommodity" / "ops"
KERNELS = sorted(OPS.glob("*/*.cu"))
INCLUDE = re.compile(r'^#include "(.*)"', re.MULTILINE)
INCLUDES = [OPS / "_csrc", *include_paths()]


def unity(folder: Path) -> Path:
    """Write a source that includes all headers, then every .cu file in a namespace of its own."""
    local_headers = {path.parent / name for path in KERNELS for name in INCLUDE.findall(path.read_text())}
    headers = [OPS / "_csrc" / "device_windows.h", *sorted(path for path in local_headers if path.exists())]
    lines = [f'#include "{header}"' for header in headers]
    lines += [f'namespace in_{path.stem} {{\n#include "{path}"\n}}' for path in KERNELS]
    source = folder / "unity.cu"
    source.write_text("\n".join(lines) + "\n")
    return source


def nvcc() -> str | None:
    """The nvcc on the path, or in the usual folders of a CUDA installation."""
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), *map(str, sorted(Path("/usr/local").glob("cuda-*")))]
    return shutil.which("nvcc") or next(filter(None, (shutil.which(f"{home}/bin/nvcc") for home in homes)), None)
