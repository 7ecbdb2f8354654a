"""Where and in which numbers a network is trained: device, precision, processes, threads."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch
from lightning.fabric import Fabric
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.fabric.plugins import MixedPrecision
from torch import nn

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["32-true", "bf16-mixed", "16-mixed"]
Matmul = Literal["highest", "high", "medium"]


def machine(device: Device, precision: Precision, tensorboard: Path | None = None) -> Fabric:
    """A launched Fabric: one device a process, and as many processes as torchrun started."""
    here: dict[Device, bool] = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        device = next(name for name, available in here.items() if available)
    if not here[device]:
        raise ValueError(f"train: device {device} is not available here; say cpu or auto")
    for name in ("lightning.fabric", "lightning.pytorch"):  # they announce themselves otherwise
        logging.getLogger(name).setLevel(logging.ERROR)
    torchrun = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    beside = int(os.environ["LOCAL_WORLD_SIZE"]) if torchrun else 1
    fabric = Fabric(
        accelerator=device,
        devices=beside,
        num_nodes=int(os.environ["WORLD_SIZE"]) // beside if torchrun else 1,
        strategy="ddp" if torchrun else "auto",
        plugins=None if precision == "32-true" else MixedPrecision(precision, device),
        loggers=None if tensorboard is None else TensorBoardLogger(tensorboard, name="", version=""),
    )
    fabric.launch()
    return fabric


@contextmanager
def numbers(fabric: Fabric, matmul: Matmul, threads: int) -> Iterator[None]:
    """Threads, precision of float32 matrix products and the global generators are put back afterwards."""
    before, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    cuda = [fabric.device.index or 0] if fabric.device.type == "cuda" else []
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul)
    try:
        with torch.random.fork_rng(devices=cuda):
            yield
    finally:
        torch.set_num_threads(before)
        torch.set_float32_matmul_precision(precision)


def add_up(fabric: Fabric, parameters: list[nn.Parameter]) -> None:
    """The sum of the processes' gradients on each of them; a process without a sequence adds nothing.

    By hand and not by DistributedDataParallel, which takes the mean of pieces of unequal size, casts prices to half
    precision and waits for parameters that took no part.
    """
    if fabric.world_size == 1:
        return
    took = torch.tensor([float(p.grad is not None) for p in parameters], device=fabric.device)
    for parameter, part in zip(parameters, fabric.all_reduce(took, reduce_op="sum").tolist()):  # type: ignore[union-attr]
        if part:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = fabric.all_reduce(own, reduce_op="sum")  # type: ignore[assignment]
