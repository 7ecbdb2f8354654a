"""Batches of any model, or of a forecaster's prices: which are refused, their inputs and target, and their loss."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from torch_opkit.arguments import current_operation, raise_invalid
from torchcommodity.data import Window, targets
from torchcommodity.forecast import Forecaster
from torchcommodity.losses import pinball
from torchcommodity.models import HarNetwork, positive_prices
from torchcommodity.optimize._module import Loss, call_loss, call_model, check_scalar, is_sequence
from torchcommodity.training import ModelInputs, to_device

BatchInputs = tuple[Tensor | None, ...]  # of `ModelInputs.batch`, each with a batch axis; prices (B, T, N) first


def benchmark_inputs(inputs: ModelInputs, rows: int, batch_size: int, ahead: int) -> BatchInputs:
    """Repeat the last `rows` rows of prices `batch_size` times.

    Args:
        inputs: result of `training.model_inputs`.
        rows: T, rows of each forecast.
        batch_size: B, forecasts per call.
        ahead: A, rows of the roll calendar after the last price; the longest horizon.

    Returns:
        The inputs with a batch axis, the arguments of a model of `models.MODELS`.

    Raises:
        ValueError: `rows` exceeds the number of prices, or an argument is below 1.

    Example:
        >>> from torchcommodity import data
        >>> from torchcommodity.training import model_inputs
        >>> benchmark_inputs(model_inputs(data.embedded(), 126), 500, 8, 126)[0].shape
        torch.Size([8, 500, 3])
    """
    total = len(inputs.prices)
    if not 1 <= rows <= total or batch_size < 1:
        got = f"rows={rows}, batch_size={batch_size}"
        raise ValueError(f"benchmark_inputs: rows must be in [1, {total}] and batch_size at least 1; got {got}")

    window = inputs.after(total - rows)
    if window.rolls is not None:
        window = window._replace(rolls=window.rolls[: rows + ahead])
    return tuple(None if x is None else x.expand(batch_size, *x.shape[1:]).contiguous() for x in window.batch())


ROWS, WINDOWS = 252, 16  # rows of a window of prices after the warm-up; number of windows of a measurement
TRAINING_ROWS = 1024  # windows at most, if only the last row of each is forecast; 32 in a training step
TRAINING_WINDOWS, SCORED = 256, 126  # if so many last rows are; 8 windows in a training step


def split_batch(batch: object) -> tuple[object, Sequence[object]]:
    """Inputs, and a target if there is one, of a batch as data loaders yield it."""
    if isinstance(batch, Window):  # its rows are neither inputs nor a target
        return batch.inputs, [batch.targets]
    inputs, *target = batch if is_sequence(batch) else (batch,)
    return inputs, target


def split_inputs(module: nn.Module, batch: object, loss_fn: Loss | None) -> tuple[object, Sequence[object]]:
    """Inputs and target of a batch. Without a loss, what the model does not take is left out."""
    if loss_fn is not None:
        return split_batch(batch)
    if isinstance(batch, Window):
        return batch.inputs, ()
    if not is_sequence(batch):
        return batch, ()
    if batch and (isinstance(batch[0], Mapping) or is_sequence(batch[0])):
        return batch[0], ()
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return tuple(batch), ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(batch[: sum(parameter.kind in kinds for parameter in parameters)]), ()


def batch_loss(module: nn.Module, batch: object, loss_fn: Loss) -> Tensor:  # ()
    """Loss of one batch, checked: a finite scalar with a gradient."""
    inputs, target = split_batch(batch)
    return check_loss(call_loss(loss_fn, call_model(module, inputs), target))


def check_loss(loss: object) -> Tensor:  # ()
    """Check that a loss is a finite scalar with a gradient."""
    scalar = check_scalar(loss)
    if not scalar.isfinite():
        rule = "the loss must be finite; check the batch for NaN, or lower the learning rate"
        raise_invalid(current_operation(), rule, loss=scalar.item())
    return scalar


def check_iterable(batches: object, example: str = "[batch]") -> None:
    """Check that batches are an iterable of batches, and not one batch."""
    wrong = isinstance(batches, Tensor | Mapping | str | PackedSequence) or not isinstance(batches, Iterable)
    # a tuple of tensors is one batch; iterating it would call the model on each part
    if wrong or (isinstance(batches, tuple) and any(x is None or isinstance(x, Tensor) for x in batches)):
        rule = f"batches must be an iterable of batches, such as a DataLoader or {example}"
        raise_invalid(current_operation(), rule, TypeError, batches=type(batches).__name__)


def check_batches(batches: object, *, repeated: bool) -> None:
    """Check batches that have a loss, which can be read once per epoch if `repeated`."""
    if isinstance(batches, ModelInputs):
        rule = "batches of prices (ModelInputs) need a Forecaster; a module takes an iterable of (inputs, target)"
        raise_invalid(current_operation(), rule, TypeError, batches="ModelInputs")
    check_iterable(batches, "[(inputs, target)]")
    if repeated and isinstance(batches, Iterator):
        rule = "batches must be readable once per epoch; pass a list or a DataLoader instead of an iterator"
        raise_invalid(current_operation(), rule, TypeError, batches=type(batches).__name__)


def raise_empty(argument: str = "batches") -> NoReturn:
    """Raise ValueError for an iterable without a batch."""
    raise ValueError(f"{current_operation()}: {argument} must hold at least one batch; got an empty iterable")


def measured_batches(model: nn.Module | Forecaster, batches: Iterable[object] | ModelInputs) -> Iterable[object]:
    """Batches as they are or, of a forecaster's prices, 16 windows."""
    if isinstance(batches, ModelInputs) and isinstance(model, Forecaster):
        return price_windows(model, batches, _window_ends(model, batches, WINDOWS))
    return batches


def batches_and_loss(
    model: nn.Module | Forecaster, batches: Iterable[object] | ModelInputs, loss_fn: Loss | None
) -> tuple[Iterable[object], Loss]:
    """Batches and their loss: as they are for a module, made of prices for a forecaster with ModelInputs."""
    if isinstance(batches, ModelInputs) and isinstance(model, Forecaster):
        return measured_batches(model, batches), loss_fn or price_loss(model)
    check_batches(batches, repeated=False)
    if loss_fn is None:
        raise_invalid(current_operation(), "batches need a loss_fn(output, target)", loss_fn=None)
    return batches, loss_fn


class TrainingBatches(NamedTuple):
    """Batches for training, readable once per epoch, and for validation; and what is called on them."""

    training: Iterable[object]
    validation: Iterable[object] | None
    every_row: bool = False

    def called(self, module: nn.Module) -> nn.Module:
        """The module, or one that gives the forecasts of every row of windows."""
        return LastRows(cast(HarNetwork, module)) if self.every_row else module


class EveryRow(nn.Module):
    """Forecasts of every row by one call of a model that corrects the scale of every row."""

    def __init__(self, model: HarNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor | None) -> Tensor:  # (B, T, H, N, Q)
        output = self.model.har(*inputs)
        quantiles: Tensor = self.model.har.quantiles(output, self.model.correction(output))
        return quantiles


class LastRows(EveryRow):
    """Forecasts of the last rows of windows; zero where there is none."""

    def forward(self, *inputs: Tensor | None) -> Tensor:  # (B, R, H, N, Q)
        quantiles = super().forward(*inputs)[:, -SCORED:]
        return torch.where(quantiles.isfinite(), quantiles, 0.0)  # before a symbol's warm-up: without a gradient


def training_batches(
    model: nn.Module | Forecaster, batches: Iterable[object] | ModelInputs, validation: Iterable[object] | None
) -> TrainingBatches:
    """Batches as they are or, of a forecaster's prices, windows.

    Training takes them in random order; the last fifth, whose origins come after the outcomes of the others, is the
    validation.
    """
    if not (isinstance(batches, ModelInputs) and isinstance(model, Forecaster)):
        check_batches(batches, repeated=True)
        if validation is not None:
            check_batches(validation, repeated=False)
        return TrainingBatches(batches, validation)
    every_row = model.model.lookback is None  # else it forecasts the last row of a window only
    most, at_once, scored = (TRAINING_WINDOWS, 8, SCORED) if every_row else (TRAINING_ROWS, 32, 1)
    ends = _window_ends(model, batches, most)
    first = ends[-max(len(ends) // 5, 1)]
    earlier = [end for end in ends if end + model.horizons[-1] + scored - 1 <= first]
    if not earlier:
        rule = "inputs must have rows for windows of training and, a longest horizon later, of validation"
        raise_invalid(current_operation(), rule, rows=len(batches.prices))
    order = torch.randperm(len(earlier), generator=torch.Generator().manual_seed(0)).tolist()
    scored = scored if every_row else 0
    training = price_windows(model, batches, [earlier[k] for k in order], at_once, scored)
    if validation is None:
        validation = price_windows(model, batches, [end for end in ends if end >= first], at_once, scored)
    return TrainingBatches(training, validation, every_row)


def price_loss(forecaster: Forecaster) -> Loss:
    """Pinball loss of the forecasts of a forecaster's model, over the root of the horizon, so that all weigh alike."""
    levels, root = torch.tensor(forecaster.levels, dtype=torch.double), root_of_horizons(forecaster)

    def loss(quantiles: Tensor, target: Tensor) -> Tensor:
        scale = root.to(target)
        return pinball(quantiles.to(target) / scale.unsqueeze(-1), target / scale, levels.to(target))

    return loss


def root_of_horizons(forecaster: Forecaster) -> Tensor:  # (H, 1)
    """Root of every horizon in rows, with which the scale of a return grows."""
    return torch.tensor(forecaster.horizons, dtype=torch.double).sqrt().unsqueeze(-1)


def _window_ends(forecaster: Forecaster, inputs: ModelInputs, most: int) -> list[int]:
    """Rows after windows, evenly spaced in order of time, in which every symbol has prices."""
    first = int(inputs.prices.isfinite().int().argmax(0).max())  # the row of the first price of the youngest symbol
    rows, ahead, total = first + _window_rows(forecaster), forecaster.horizons[-1], len(inputs.prices)
    if total < rows + ahead:
        rule = f"inputs must have at least {rows + ahead} rows: a warm-up, a window and the longest horizon"
        rule += f", from row {first} on, where every symbol has prices" if first else ""
        raise_invalid(current_operation(), rule, rows=total)
    ends: list[int] = torch.linspace(rows, total - ahead, min(most, total - ahead - rows + 1)).long().tolist()
    return ends


def _window_rows(forecaster: Forecaster) -> int:
    return forecaster.model.har.config.warmup + ROWS


def price_windows(
    forecaster: Forecaster, inputs: ModelInputs, ends: Sequence[int], at_once: int = 1, scored: int = 0
) -> list[tuple[tuple[Tensor | None, ...], Tensor]]:
    """Batches of windows that end before rows: arguments of the model, and log-returns (B, H, N) after the last row.

    With `scored` rows, the log-returns (B, R, H, N) are those after each of the last R rows.
    """
    rows = _window_rows(forecaster)
    prices = positive_prices(inputs.prices.double(), forecaster.scale)
    realized = targets(prices, forecaster.horizons)
    inputs, realized = inputs.to(forecaster.device), to_device(realized, forecaster.device)
    batches = []
    for start in range(0, len(ends), at_once):
        chosen = ends[start : start + at_once]
        windows = [inputs.before(end).after(end - rows).batch() for end in chosen]
        parts = [None if part[0] is None else torch.cat(part) for part in zip(*windows)]
        outcomes = [realized[end - scored : end] if scored else realized[end - 1] for end in chosen]
        batches.append((tuple(parts), torch.stack(outcomes)))
    return batches
