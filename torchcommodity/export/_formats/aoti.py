"""Format `aoti`: the graph compiled to machine code by AOTInductor, together with the native operator library."""

import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_opkit import native_libraries
from torchcommodity import ops
from torchcommodity.export._checksum import append_zip_checksum
from torchcommodity.export._compatibility import CPU, check_compiled_for, move
from torchcommodity.export._formats import pt2
from torchcommodity.export._metadata import Metadata

SETTINGS = {
    "aot_inductor.precompile_headers": False,  # pays off for many graphs: one export spends half of its time on them
    "triton.autotune_at_compile_time": False,  # on random inputs, whose indices are beyond the tables that they index
}
LIBRARY = "library/"  # folder in the archive; a program without Python loads it first


def check_available() -> None:
    """Raise ValueError if the native operator library is not loaded, or there is no compiler."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    if not _libraries():
        raise ValueError(
            "export: format 'aoti' includes the native library, which is not built or is disabled; use format 'onnx'"
        )
    try:
        get_cpp_compiler()
    except RuntimeError as error:
        raise ValueError(
            "export: format 'aoti' needs a C++ compiler, g++ or the one that the variable CXX names; got none that "
            "runs; use format 'pt2' or 'onnx'"
        ) from error


def to_bytes(
    program: torch.export.ExportedProgram,
    metadata: Metadata,
    device: torch.device = CPU,
    inductor_configs: dict[str, Any] | None = None,
) -> bytes:
    """AOTInductor package of a graph for a device."""
    program = move(program, device)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # contains local paths
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # deprecations inside torch's compiler
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=f"{folder}/model.pt2", inductor_configs=SETTINGS | (inductor_configs or {})
        )
        records = pt2.read_records(Path(package).read_bytes())
    # The .so holds what the sources say. torch 2.11 finds the metadata by their names; its loader for a GPU then
    # crashes, where without them it says what it misses.
    names = [name for name in records if device.type == "cpu" or not name.endswith(".cpp")]
    records = {name: b"" if name.endswith(".cpp") else records[name] for name in names}
    records |= {f"{LIBRARY}{path.name}": path.read_bytes() for path in _libraries()}
    return append_zip_checksum(pt2.write_records(records | {pt2.METADATA: metadata.to_json().encode()}))


def from_bytes(package: bytes, device: torch.device = CPU) -> Callable[[Tensor, Tensor], Tensor]:
    """The forecaster of a package compiled for this device; the `commodity` operators are already loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt2")
        path.write_bytes(package)  # the verified bytes: the original file may have changed since
        target = torch._C._aoti.AOTIModelPackageLoader.load_metadata_from_package(str(path), "model")  # type: ignore[attr-defined]
        check_compiled_for(target["AOTI_DEVICE_KEY"], device)
        for name, local in _processor(target["AOTI_DEVICE_KEY"]).items():
            if not set(target.get(name, local).split()) <= set(local.split()):
                raise ValueError(f"machine code for another processor: {name} {target[name]}; this one has {local}")
        return torch._inductor.aoti_load_package(str(path), device_index=-1 if device.index is None else device.index)


def _libraries() -> list[Path]:
    return [path for path in native_libraries() if path == ops.NATIVE.path]


def _processor(device_type: str) -> dict[str, str]:
    """The fields of torch's `get_device_information`, which compiles tests: a server has no compiler."""
    from torch._dynamo.device_interface import get_interface_for_device
    from torch._inductor.cpu_vec_isa import pick_vec_isa, x86_isa_checker

    return {
        "AOTI_PLATFORM": sys.platform,
        "AOTI_MACHINE": platform.machine(),
        "AOTI_CPU_ISA": (" ".join(x86_isa_checker()) or str(pick_vec_isa())).upper(),
        "AOTI_COMPUTE_CAPABILITY": str(get_interface_for_device(device_type).get_compute_capability()),
    }
