"""GPU architectures of a build: the argument, TORCH_CUDA_ARCH_LIST, the GPUs of this machine, or a default."""

import difflib
import os
import re
from collections.abc import Iterable, Sequence

VARIABLE = "TORCH_CUDA_ARCH_LIST"
DEFAULT = ("8.0", "9.0+PTX")
NAMES = {  # as torch.utils.cpp_extension reads them
    "Kepler+Tesla": ("3.7",),
    "Kepler": ("3.5+PTX",),
    "Maxwell+Tegra": ("5.3",),
    "Maxwell": ("5.0", "5.2+PTX"),
    "Pascal": ("6.0", "6.1+PTX"),
    "Volta+Tegra": ("7.2",),
    "Volta": ("7.0+PTX",),
    "Turing": ("7.5+PTX",),
    "Ampere+Tegra": ("8.7",),
    "Ampere": ("8.0", "8.6+PTX"),
    "Ada": ("8.9+PTX",),
    "Hopper": ("9.0+PTX",),
    "Blackwell+Tegra": ("11.0",),
    "Blackwell": ("10.0", "10.3", "12.0", "12.1+PTX"),
}
CAPABILITY = re.compile(r"(\d+)\.(\d[af]?)(\+PTX)?")


def gencode(
    architectures: Sequence[str] | None = None, operation: str = "build", flags: Sequence[str] = ()
) -> list[str]:
    """nvcc's options for these architectures; None: those of the environment, of this machine's GPUs, or a default.

    If nvcc's other flags choose an architecture, and the argument does not, there is nothing to add to them.
    """
    if isinstance(architectures, str) or (architectures is not None and not architectures):
        raise TypeError(
            f'{operation}: architectures must be a sequence of compute capabilities, such as ("7.5", "8.0+PTX"); '
            f"got {architectures!r}"
        )
    if architectures:
        return _options(architectures, f"{operation}: architectures")
    if any("arch" in flag for flag in flags):
        return []
    listed = re.split(r"[;\s]+", os.environ.get(VARIABLE, "").strip("; "))
    return _options(listed, VARIABLE) if any(listed) and listed != ["native"] else _options(_visible() or DEFAULT)


def _options(architectures: Iterable[str], source: str = "") -> list[str]:
    codes = list[str]()
    for capability in (part for name in architectures for part in NAMES.get(name, (name,))):
        match = CAPABILITY.fullmatch(capability)
        if not match:
            raise ValueError(
                f'{source} must hold compute capabilities, such as "7.5" or "8.0+PTX", or names of architectures, such '
                f'as "Turing"; got {capability!r}{_suggestion(capability)}'
            )
        number = match[1] + match[2]
        codes.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if match[3]:  # PTX, which the driver compiles for later GPUs
            codes.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return list(dict.fromkeys(codes))


def _suggestion(text: str) -> str:
    number = re.fullmatch(r"(?:sm_|compute_)?(\d+)(\d[af]?)(\+PTX)?", text)
    if number:
        return f'; write "{number[1]}.{number[2]}{number[3] or ""}"'
    names = difflib.get_close_matches(text.capitalize(), NAMES, n=1)
    return f'; did you mean "{names[0]}"?' if names else ""


def _visible() -> list[str]:
    """Architectures of the GPUs that torch sees, with PTX of the newest."""
    import torch

    gpus = range(torch.cuda.device_count())
    capabilities = sorted({torch.cuda.get_device_capability(gpu) for gpu in gpus})
    names = [f"{major}.{minor}" for major, minor in capabilities]
    return [*names[:-1], f"{names[-1]}+PTX"] if names else []
