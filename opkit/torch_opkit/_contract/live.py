"""Live updates: an operator with `start` and `step` gives the bits of one call, however the rows are split."""

import io
import random
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_opkit._cases import Sample
from torch_opkit._contract.case import Case, SkipCheck, Tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_bitwise_equal
from torch_opkit._contract.resize import resize
from torch_opkit._contract.signature import arrange
from torch_opkit._live import LiveState
from torch_opkit._op import Op


@register(
    "`start` and `step` must keep what later rows need, in full precision, and compute with the arithmetic of the call "
    "on all rows: a window keeps its rows, a recurrence its last value. `step` returns a new state.",
    depends_on=("causal",),
    needs_time=True,
)
def live(case: Case) -> None:
    """Live updates: `start`, `step` and `update` give the bits of one call on all rows, from a state of tensors."""
    target = case.cases.function if isinstance(case.op, Op) else case.op.invocation.target
    if not (callable(getattr(target, "start", None)) and callable(getattr(target, "step", None))):
        raise SkipCheck("it has no start and step")
    if not case.causal:
        raise SkipCheck("it looks ahead: live updates do not know later rows")
    for seed, (label, changed) in enumerate(_variants(case)):
        expected = changed.call()
        first, rows = _run(changed, target, random.Random(seed))
        last_rows = [y.narrow(case.time[1], first, y.shape[case.time[1]] - first) for y in expected]
        assert_bitwise_equal(rows, last_rows, f"live updates of {label}, from row {first} on")


def _variants(case: Case) -> Iterator[tuple[str, Case]]:
    yield "the sample", case
    yield "the sample", case
    holes = case.map_panels(_with_holes)
    wide = resize(case, rows=64, assets=None if case.op.vmap == "loop" else 70)
    wide = wide.map_tensors(lambda x: x.float() if x.is_floating_point() else x)
    for label, changed in (("missing values", holes), ("a larger panel in float32", wide)):
        try:
            changed.call()
        except Exception:  # refuses missing values, another size or dtype: other checks judge that
            continue
        yield label, changed


def _with_holes(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        return x
    missing = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.2
    return x.masked_fill(missing.to(x.device), torch.nan)


def _run(case: Case, target: Any, generator: random.Random) -> tuple[int, list[Tensor]]:
    """Split the rows at random: a history, single rows, several rows. Returns the outputs of all rows after it."""
    row = first = generator.choice([0, 1, case.rows // 2])
    inputs = enumerate(case.tensors[: case.num_inputs])
    history = [x.narrow(case.time[0], 0, first) if i in case.panel_indices else x for i, x in inputs]
    sample = Sample(*history, **case.sample.settings)
    args, kwargs = list(sample.tensors), sample.settings
    if not isinstance(case.op, Op):
        args, kwargs = arrange(case.op.make.parameters, sample)
    state, outputs = target.start(*args, **kwargs), list[Tensors]()
    while row < case.rows:
        count = min(generator.choice([1, 1, 2, 5, 16]), case.rows - row)
        state, results = _next(case, target, _save_and_load(state), row, count)
        outputs.append(results)
        row += count
    return first, [torch.cat(parts, case.time[1]) for parts in zip(*outputs, strict=True)]


def _next(case: Case, target: Any, state: LiveState, row: int, count: int) -> tuple[LiveState, Tensors]:
    before, (input_axis, output_axis) = {name: x.clone() for name, x in state.items()}, case.time
    panels = [case.tensors[i].narrow(input_axis, row, count) for i in case.panel_indices]
    if count == 1 or not hasattr(target, "update"):
        rows, later = list[list[Tensor]](), state
        for k in range(count):
            later, results = target.step(later, *(x.select(input_axis, k) for x in panels))
            rows.append(_timed(case, results))
        outputs = tuple(torch.stack(parts, output_axis) for parts in zip(*rows, strict=True))
    else:
        later, results = target.update(state, *panels)
        outputs = tuple(_timed(case, results))
    assert before.keys() == state.keys(), "a call changed the keys of the state that it received"
    for name, x in state.items():
        assert torch.equal(_bytes(x), _bytes(before[name])), f"a call wrote to {name!r} of the state that it received"
    return later, outputs


def _timed(case: Case, results: object) -> list[Tensor]:
    """The outputs with a time axis."""
    leaves = tree_leaves(results)
    return leaves if isinstance(case.op, Op) else [leaves[i] for i in case.op.timed_outputs]


def _save_and_load(state: object) -> LiveState:
    """The state after a round trip through a file; through pickled tensors where safetensors is not installed."""
    assert isinstance(state, dict), f"the state must be a dict of tensors; got {type(state).__name__}"
    for name, x in state.items():
        assert isinstance(x, Tensor), f"the state must map names to tensors; got {type(x).__name__} for {name!r}"
    try:
        from safetensors.torch import load, save
    except ImportError:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file, weights_only=True)  # type: ignore[no-any-return]
    return load(save(state))


def _bytes(x: Tensor) -> Tensor:
    # a tensor of one element is contiguous with any stride, and is then no view as bytes
    return x.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)
