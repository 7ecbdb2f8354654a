"""`compile`: torch.compile, with what it changes: time, values, graph breaks, recompilations."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Literal

import torch
from torch import nn

from torch_opkit.arguments import check_integer, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._batches import check_iterable, measured_batches, raise_empty
from torchcommodity.optimize._compile.comparison import Comparison
from torchcommodity.optimize._compile.result import CompileResult
from torchcommodity.optimize._module import Loss, module_of, threads_of
from torchcommodity.optimize._speedup import speedup
from torchcommodity.optimize._steps import device_of, restored, to_device
from torchcommodity.training import ModelInputs

Mode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MOST = 64  # batches that are run


@operation("compile")
def compile(
    model: nn.Module | Forecaster,
    batches: Iterable[object] | ModelInputs,
    *,
    mode: Mode = "default",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    backend: str | Callable[..., object] = "inductor",
    options: Mapping[str, str | int | bool] | None = None,
    loss_fn: Loss | None = None,
    rounds: int = 30,
) -> CompileResult:
    """Compile a model with torch.compile, and compare it with the eager model in values and time.

    All batches are run once, which shows graph breaks and the shapes that are compiled again; then the eager and the
    compiled model are timed on one batch of each shape, in interleaved calls. With a `loss_fn`, a call is forward pass,
    loss and backward pass in training mode, and gradients are compared too; else it runs in evaluation mode without
    gradients. The model stays in that mode; weights, buffers and gradients are restored.

    All compiled code of the process is dropped first (`torch.compiler.reset`), so that a class that was compiled before
    is measured from the start; other compiled models compile again when they are called.

    Args:
        model: any module that is not compiled yet, or a forecaster (on one CPU thread, as it forecasts).
        batches: an iterable of batches, of which the first 64 are used; see `profile`.
        mode: mode of torch.compile. CUDA graphs of "reduce-overhead" and "max-autotune" need a GPU.
        dynamic: True compiles for any size, False for each shape; None decides when a second shape is seen.
        fullgraph: refuse a graph break instead of going on in Python.
        backend: backend of torch.compile, by name or as a function.
        options: settings of the backend, such as {"epilogue_fusion": True} of Inductor, in place of a mode.
        loss_fn: loss_fn(output, target), or loss_fn(output) for batches without a target.
        rounds: timed rounds, at least 5.

    Returns:
        A CompileResult, which says "no significant speedup" where the interval of the ratio contains 1.

    Raises:
        TypeError: the model is not an eager module, or batches are not an iterable of batches.
        ValueError: a batch does not fit the model (with its shapes), or an argument is out of range.
        RuntimeError: the model cannot be compiled, with the reason and the line.
    """
    check_integer("compile", 5, rounds=rounds)
    if mode not in MODES:
        raise_invalid("compile", f"mode must be one of {', '.join(MODES)}", mode=mode)
    if options is not None and mode != "default":
        raise_invalid("compile", "give either a mode or options, which a mode would set", mode=mode, options=options)
    module = module_of(model)
    batches = measured_batches(model, batches)
    check_iterable(batches)
    iterator, device = iter(batches), device_of(module)
    examples = [to_device(batch, device) for batch in islice(iterator, MOST)]
    if not examples:
        raise_empty()
    notes = [f"only the first {MOST} batches were run"] if any(True for _ in iterator) else []
    with threads_of(model), restored(module, None, training=loss_fn is not None):
        comparison = Comparison(module, loss_fn)
        comparison.examine(examples[0])
        torch.compiler.reset()  # else code of an earlier compilation of this class is reused, whatever its settings
        settings = {"mode": mode} if options is None else {"options": dict(options)}
        comparison.compile(dynamic=dynamic, fullgraph=fullgraph, backend=backend, **settings)
        for batch in examples:
            comparison.compare(batch)
        times = comparison.time(rounds)
    module.train(loss_fn is not None)
    if mode != "default" and not comparison.cuda:
        notes.append(f"the model is on the CPU, where mode={mode!r} has no CUDA graphs")
    return CompileResult(
        model=comparison.compiled,
        mode=mode,
        training=loss_fn is not None,
        batches=tuple(comparison.examples),
        compile_seconds=comparison.seconds,
        speedup=speedup(times["eager"], times["compiled"]),
        differences=tuple(sorted(comparison.rows.values(), key=lambda row: -row.absolute)),
        graph_breaks=comparison.log.graph_breaks(),
        recompilations=tuple(comparison.recompilations),
        notes=(*notes, *comparison.notes()),
    )
