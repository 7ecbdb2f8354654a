"""`profile`: run the steps under torch.profiler, and sum what it recorded."""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

from torch_opkit.arguments import check_integer, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._batches import measured_batches
from torchcommodity.optimize._module import Loss, module_to_run, threads_of
from torchcommodity.optimize._profile.measure import BatchSource, ProfiledStep, measure
from torchcommodity.optimize._profile.result import Profile
from torchcommodity.optimize._profile.stacks import locations, record_stacks, write_stacks, write_trace
from torchcommodity.optimize._profile.summarize import summarize
from torchcommodity.optimize._steps import restored
from torchcommodity.training import ModelInputs

PathLike = str | Path


@operation("profile")
def profile(
    model: nn.Module | Forecaster,
    batches: Iterable[object] | ModelInputs,
    *,
    loss_fn: Loss | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    steps: int = 5,
    warmup: int = 2,
    wait: int = 0,
    stacks: bool | PathLike = True,
    trace: PathLike | None = None,
) -> Profile:
    """Profile the steps of a model with torch.profiler: time and memory by stage, layer and operator.

    A step takes a batch, which is the stage "data loader", and calls the model: in evaluation mode without gradients,
    or with a `loss_fn` in training mode with loss, backward pass and, with an `optimizer`, its step. The schedule is
    that of `torch.profiler.schedule`: `wait` and `warmup` steps, then the measured ones. CUDA is recorded if the model
    is on a GPU; stages then wait for their kernels. Weights, buffers, gradients, optimizer and mode are restored.

    Args:
        model: any module, compiled ones included, or a forecaster (on one CPU thread, as it forecasts).
        batches: an iterable of batches, such as a DataLoader or [batch]. A list or DataLoader starts again at its end;
            from an iterator that ends fewer steps are measured. A batch is a Tensor, a tuple or list of arguments, or a
            mapping of keyword arguments. With a `loss_fn` it is (inputs, target), where inputs are any of these. Of a
            forecaster: [`benchmark_inputs`] or prices (`training.model_inputs`), of which 16 windows are taken.
        loss_fn: loss_fn(output, target), or loss_fn(output) for batches without a target.
        optimizer: optimizer of the model's parameters.
        steps: measured steps; the result is their mean.
        warmup: steps before them.
        wait: steps before the warm-up.
        stacks: record Python stacks in one more step, for the file and line of operators; a path also writes them as
            folded stacks, for flamegraph.pl or speedscope.app.
        trace: trace file of the measured steps, for chrome://tracing or ui.perfetto.dev; gzip if it ends with .gz.

    Returns:
        A Profile, which prints as tables; times in microseconds per step.

    Raises:
        TypeError: the model is not a module, or batches are not an iterable of batches.
        ValueError: batches end before the first measured step, a batch does not fit the model (with its shapes), the
            loss is not a scalar with a gradient, or an argument is out of range.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        >>> batches = [(torch.ones(32, 8), torch.ones(32, 1))]
        >>> result = optimize.profile(model, batches, loss_fn=torch.nn.functional.mse_loss, stacks=False)
        >>> list(result.stages)
        ['data loader', '0', '1', '2', 'rest of forward', 'loss', 'backward', 'other']
        >>> result.steps, len(result.largest)
        (5, 3)
    """
    check_integer("profile", 1, steps=steps)
    check_integer("profile", 0, warmup=warmup, wait=wait)
    module = module_to_run(model)
    _check_optimizer(module, loss_fn, optimizer)
    files = [path for path in (trace, stacks) if path is not None and not isinstance(path, bool)]
    if missing := [path for path in files if not Path(path).resolve().parent.is_dir()]:
        raise_invalid("profile", "the folder of trace and stacks must exist", path=str(missing[0]))
    if folders := [path for path in files if Path(path).is_dir()]:
        raise_invalid("profile", "trace and stacks must be files, not folders", path=str(folders[0]))
    with threads_of(model), restored(module, optimizer, training=loss_fn is not None):
        run = ProfiledStep(module, loss_fn, optimizer)
        measurement = measure(run, BatchSource(measured_batches(model, batches)), steps, warmup, wait)
        events = record_stacks(run, measurement.batch) if stacks else []
        result = summarize(run, measurement, locations(events), torch.get_num_threads())
    if trace is not None:
        write_trace(measurement.profiler, trace)
    if not isinstance(stacks, bool):
        write_stacks(events, stacks)
    return result


def _check_optimizer(module: nn.Module, loss_fn: Loss | None, optimizer: object) -> None:
    if optimizer is None:
        return
    if not isinstance(optimizer, torch.optim.Optimizer):
        rule = "optimizer must be a torch.optim.Optimizer"
        raise_invalid("profile", rule, TypeError, optimizer=type(optimizer).__name__)
    if loss_fn is None:
        raise_invalid("profile", "an optimizer needs a loss_fn; pass loss_fn=, or no optimizer", loss_fn=None)
    own = {id(parameter) for parameter in module.parameters()}
    if not any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
        rule = "the optimizer must have parameters of the model; make it from model.parameters()"
        raise_invalid("profile", rule, optimizer=type(optimizer).__name__)
