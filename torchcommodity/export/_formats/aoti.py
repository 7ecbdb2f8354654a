"""The format `aoti`: the graph as machine code for this kind of processor, and the library of our operators."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcommodity.export._formats import pt2
from torchcommodity.export._metadata import Metadata
from torchcommodity.opkit import native_libraries

LIBRARY = "library/"  # in the archive: what a program without Python loads first


def to_bytes(program: torch.export.ExportedProgram, about: Metadata, options: dict[str, Any] | None = None) -> bytes:
    """A package of AOTInductor; `options` are Inductor's.

    Raises:
        ValueError: the native library of our operators is not loaded: the package would lack them.
    """
    carried = [path for path in native_libraries() if path.parent.name == "torchcommodity"]
    if not carried:
        raise ValueError("export: an aoti artifact carries the native library; it is not built or was switched off")
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of this machine
    with tempfile.TemporaryDirectory() as folder:
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=f"{folder}/model.pt2", inductor_configs=options
        )
        records = pt2.read_records(Path(package).read_bytes())
    records = {name: content for name, content in records.items() if not name.endswith(".cpp")}  # code is in the .so
    records |= {f"{LIBRARY}{path.name}": path.read_bytes() for path in carried}
    return pt2.packed(records | {pt2.ABOUT: about.json().encode()})


def from_bytes(package: bytes) -> Callable[[Tensor, Tensor], Tensor]:
    """The forecaster of a package that this processor can run; our operators are loaded already."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt2")
        path.write_bytes(package)  # what was checked, not what may lie there by now
        _check_processor(str(path))
        return torch._inductor.aoti_load_package(str(path))


def _check_processor(path: str) -> None:
    from torch._inductor.codecache import get_device_information

    made_for = torch._C._aoti.AOTIModelPackageLoader.load_metadata_from_package(path, "model")  # type: ignore[attr-defined]
    for name, here in get_device_information(made_for["AOTI_DEVICE_KEY"]).items():
        if made_for.get(name, here) != here:
            raise ValueError(f"machine code for this processor ({name} {here}); it was made for {made_for[name]}")
