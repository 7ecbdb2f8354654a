"""Python stacks of operators: file and line, folded stacks, and the trace file."""

import re
import tempfile
from collections import Counter
from pathlib import Path

from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from torchcommodity.data import write_atomic
from torchcommodity.optimize._profile.measure import ProfiledStep

LIBRARY = re.compile(r"^(<|nn\.Module: )|(^|/)torch/")  # built-in functions, names of modules, PyTorch
FRAME = re.compile(r"(.*)\((\d+)\): (.*)")
OWN = re.compile(r"torchcommodity/optimize/(_module|_steps|_profile/measure)\.py")


def record_stacks(run: ProfiledStep, batch: object) -> list[FunctionEvent]:
    """Operators of one more step, with their Python stacks; recording them takes time, so it is a step of its own."""
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        with_stack=True,
        experimental_config=_ExperimentalConfig(verbose=True),  # without it, the stacks are empty
    ) as profiler:
        run(batch)
    return [event for event in profiler.events() or [] if _frames_of_step(event.stack or [])]


def locations(events: list[FunctionEvent]) -> dict[tuple[str, str], str]:
    """For each operator and its shapes, the place of the user's code that costs most."""
    times: dict[tuple[str, str], Counter[str]] = {}
    for event in events:
        if location := _location(event.stack):
            key = (event.name, str(event.input_shapes))
            times.setdefault(key, Counter())[location] += int(1e3 * event.self_cpu_time_total)
    return {key: counter.most_common(1)[0][0] for key, counter in times.items()}


def _location(stack: list[str]) -> str:
    """Innermost function of the user, as in "model.py:8 in forward"; else the innermost module of PyTorch."""
    frames = _frames_of_step(stack)
    match = next((FRAME.fullmatch(frame) for frame in frames if not LIBRARY.search(frame)), None)
    if match:
        return f"{match[1]}:{match[2]} in {match[3]}"
    module = next((frame for frame in frames if frame.startswith("nn.Module: ")), "")
    return module.removeprefix("nn.Module: ").rpartition("_")[0]


def _frames_of_step(stack: list[str]) -> list[str]:
    """Frames inside the step, innermost first; empty for an event outside of it."""
    end = next((i for i, frame in enumerate(stack) if OWN.search(frame)), 0)
    return stack[:end]


def write_stacks(events: list[FunctionEvent], path: str | Path) -> None:
    """Write folded stacks, "outer;inner;operator microseconds" per line."""
    times = Counter[str]()
    for event in events:
        frames = [*reversed(_frames_of_step(event.stack)), event.name]
        times[";".join(frame.replace(";", ",") for frame in frames)] += round(event.self_cpu_time_total)
    write_atomic(path, "".join(f"{stack} {time}\n" for stack, time in times.items() if time).encode())


def write_trace(profiler: profile, path: str | Path) -> None:
    """Write the trace whole, or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, Path(path).name)
        profiler.export_chrome_trace(str(temporary))
        write_atomic(path, temporary.read_bytes())
