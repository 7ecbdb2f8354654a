"""Build the native library in place for the GPU of this machine; what is compiled already is not compiled again."""

import os
import shutil
import subprocess
import sys
import time

from gpu import REHEARSAL, ROOT, Table, exit_without_gpu

COUNT = """
import torch
from torchcommodity import ops
from torch_opkit import OPERATORS
assert ops.NATIVE, ops.NATIVE.reason
own = [op for op in OPERATORS.values() if op.qualified_name.startswith("commodity::")]
cuda, cpu = (sum(device in op.devices for op in own) for device in ("cuda", "cpu"))
print(cuda, "of", cpu, "native operators have CUDA kernels")
"""


def run(*command: str) -> str:
    process = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"TORCHCOMMODITY_CUDA": "1"}
    )
    if process.returncode:
        raise RuntimeError((process.stderr or process.stdout)[-1500:])
    return process.stdout.strip()


def versions() -> str:
    import torch

    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    names = ", ".join(f"{gpu.name} sm_{gpu.major}{gpu.minor} {gpu.total_memory / 2**30:.0f} GiB" for gpu in gpus)
    return f"{names}; torch {torch.__version__}, CUDA {torch.version.cuda}, Python {sys.version.split()[0]}"


def compiler() -> str:
    from torch.utils.cpp_extension import CUDA_HOME

    nvcc = shutil.which("nvcc") or f"{CUDA_HOME}/bin/nvcc"
    return run(nvcc, "--version").splitlines()[-2]


def build() -> str:
    start = time.perf_counter()
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    return f"{time.perf_counter() - start:.0f} s"


def main() -> None:
    exit_without_gpu()
    table = Table("build", "step", "result")
    steps = {
        "versions": versions,
        "nvcc": compiler,
        "build": build,
        "kernels": lambda: run(sys.executable, "-c", COUNT),
    }
    for step in ("versions", "kernels") if REHEARSAL else steps:
        table.check(step, call=steps[step])
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
