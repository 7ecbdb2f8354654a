"""Importance of the features and past rows of a model's inputs, and pruning by importance."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_integer, check_number, current_operation, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.models import InputSelection, WindowNetwork
from torchcommodity.optimize._batches import batch_loss, batches_and_loss, split_batch
from torchcommodity.optimize._module import Loss, copy_module, is_sequence, threads_of
from torchcommodity.training import ModelInputs, check_no_extra_terms, one_thread


class Importance(NamedTuple):
    """Importance of features and of past rows; each sums to 1."""

    features: Tensor  # (F,)
    rows: Tensor  # (R,), latest row first


@operation("importance")
def importance(
    model: nn.Module | Forecaster,
    batches: Iterable[object] | ModelInputs,
    loss_fn: Loss | None = None,
    *,
    time: int = -2,
) -> Importance:
    """Gradient-based importance of a model's inputs: which features matter, and how far back in time.

        I[k, f] = mean over batches and series of  |x[t-k, f]  dL / d x[t-k, f]|

    with the loss L of a batch: the first-order change if the input is set to zero. NaN inputs do not count.

    Args:
        model: a module whose first input is a panel (..., T, F), or a forecaster.
        batches: (inputs, target), see `prune`; or the prices of a forecaster, of which 16 windows are taken: features
            are symbols.
        loss_fn: loss_fn(output, target), a scalar; for prices the pinball loss.
        time: axis of time in the input, negative; features are on the last one.

    Returns:
        An Importance.

    Raises:
        TypeError: the first input is not a floating-point Tensor, or batches are not an iterable of batches.
        ValueError: a loss is not a finite scalar with a gradient, batches differ in shape, or time is not an axis
            before the last.

    References:
        Molchanov, Mallya, Tyree, Frosio, Kautz (2019). Importance estimation for neural network pruning. CVPR.
        doi:10.1109/CVPR.2019.01152.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> class LastRow(torch.nn.Linear):
        ...     def forward(self, x):  # (B, T, F)
        ...         return super().forward(x[:, -1])
        >>> batch = (torch.randn(16, 5, 3), torch.randn(16, 1))
        >>> scores = optimize.importance(LastRow(3, 1), [batch], torch.nn.functional.mse_loss)
        >>> scores.features.shape, int(scores.rows.argmax())
        (torch.Size([3]), 0)
    """
    batches, loss_fn = batches_and_loss(model, batches, loss_fn)
    module = copy_module(model).eval().requires_grad_(False)
    with threads_of(model):
        totals = [_input_gradient(module, batch, loss_fn, time) for batch in batches]  # (T, F) each
    if not totals or len({x.shape for x in totals}) > 1:
        rule = "there must be batches, and their inputs must have the same (T, F)"
        raise_invalid("importance", rule, shapes=sorted({tuple(x.shape) for x in totals}))
    total = torch.stack(totals).mean(0)
    total = total / total.sum().clamp(min=1e-30)
    return Importance(total.sum(0), total.sum(1).flip(0))


def _input_gradient(module: nn.Module, batch: object, loss_fn: Loss, time: int) -> Tensor:  # (T, F)
    """|x dL/dx|, averaged over all axes but time and features."""
    inputs, target = split_batch(batch)
    x, replace_first = _first_input(inputs)
    if not isinstance(x, Tensor) or not x.is_floating_point():
        rule = "the first input must be a floating-point Tensor; classes and token ids have no gradient"
        raise_invalid("importance", rule, TypeError, input=getattr(x, "dtype", type(x).__name__))
    if not isinstance(time, int) or not -x.dim() <= time <= -2:
        raise_invalid("importance", "time must be a negative axis before the last of the input", time=time, input=x)
    x = x.detach().clone().requires_grad_()
    # cuDNN has no backward of recurrent layers in evaluation mode
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        loss = batch_loss(module, (replace_first(x), *target), loss_fn)
        (gradient,) = torch.autograd.grad(loss, x)
    change = (x * gradient).detach().abs().nan_to_num(0.0)
    return change.movedim(time, -2).flatten(0, -3).mean(0) if x.dim() > 2 else change


def _first_input(inputs: object) -> tuple[object, Callable[[Tensor], object]]:
    """The first input of a model, and a function that returns the inputs with another in its place."""
    if isinstance(inputs, Mapping):
        first = next(iter(inputs))
        return inputs[first], lambda x: {**inputs, first: x}
    if is_sequence(inputs):
        return inputs[0], lambda x: (x, *inputs[1:])
    return inputs, lambda x: x


@operation("correction_importance")
@one_thread()
def correction_importance(
    forecaster: Forecaster, inputs: ModelInputs, *, rows: int = 252, windows: int = 64
) -> Importance:
    """`importance` of the features and past rows of a network for its correction of the scale.

        I[k, f] = mean over windows and symbols of  sum_h |x[t-k, f]  d correction_h[t] / d x[t-k, f]|

    over the horizons h that the network corrects.

    Args:
        forecaster: forecaster whose model is a `models.InputSelection`, as a `HarLstm` is.
        inputs: prices on which it is evaluated.
        rows: R, rows of a window.
        windows: number of windows, evenly spaced over the rows after the warm-up.

    Returns:
        An Importance, for `prune_inputs` and `prune_rows`.

    Raises:
        TypeError: another argument than a forecaster.
        ValueError: the model selects no inputs or corrects no horizon, or there are too few rows.
    """
    check_integer("correction_importance", 1, rows=rows, windows=windows)
    model, har = input_selection(forecaster), forecaster.model.har
    min_rows = har.config.warmup + rows
    corrected = torch.nonzero(har.shrink).flatten().tolist()
    if len(inputs.prices) < min_rows or not corrected:
        raise ValueError(
            f"correction_importance: inputs must have at least {min_rows} rows and the network must correct a horizon; "
            f"got {len(inputs.prices)} rows and {len(corrected)} corrected horizons"
        )
    with torch.no_grad():
        features = model.network_inputs(har(*inputs.batch()))  # (N, T, F)
    ends = torch.linspace(min_rows, len(inputs.prices), windows).long().tolist()
    x = torch.cat([features[:, end - rows : end] for end in ends])  # (W N, R, F)
    return importance(_LastCorrection(model), [(x, h) for h in corrected], lambda correction, h: correction[:, h].sum())


class _LastCorrection(nn.Module):
    """The correction at the last row as a module of its features."""

    def __init__(self, model: InputSelection) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:  # (W N, R, F) -> (W N, H)
        return self.model.last_correction(x)


@operation("prune_inputs")
def prune_inputs(forecaster: Forecaster, scores: Importance, keep: float = 0.99) -> Forecaster:
    """Remove the least important inputs of the network.

    Args:
        forecaster: forecaster whose model is a `models.InputSelection`, as a `HarLstm` is.
        scores: result of `correction_importance`.
        keep: share of the total importance of the remaining inputs, in (0, 1].

    Returns:
        A forecaster with a smaller network.

    Raises:
        ValueError: the model selects no inputs, or `keep` is out of range.
    """
    order = scores.features.argsort(descending=True)
    remaining = order[: _count(scores.features[order], keep)].sort().values.tolist()
    return replace(forecaster, model=input_selection(forecaster).select_inputs(remaining))


@operation("prune_rows")
def prune_rows(forecaster: Forecaster, scores: Importance, keep: float = 0.99) -> Forecaster:
    """Limit the network to the last rows, so that a forecast takes fewer recurrent steps.

    The econometric part still uses all rows. Fine-tune before pruning rows: training the result
    would need one window per row.

    Args:
        forecaster: forecaster whose model is a `models.InputSelection`, as a `HarLstm` is.
        scores: result of `correction_importance`.
        keep: share of the total importance of the remaining rows, in (0, 1].

    Returns:
        A forecaster whose network uses fewer rows.

    Raises:
        ValueError: the model selects no inputs, or `keep` is out of range.
    """
    return replace(forecaster, model=input_selection(forecaster).limit_rows(_count(scores.rows, keep)))


def _count(shares: Tensor, keep: float) -> int:
    """Number of leading shares that sum to at least `keep` of the total."""
    check_number("prune", keep=keep)
    if not 0 < keep <= 1:
        raise ValueError(f"prune: keep must be in (0, 1]; got {keep}")
    return min(int((shares.cumsum(0) < keep * shares.sum()).sum()) + 1, len(shares))


def input_selection(forecaster: object) -> InputSelection:
    """Return the forecaster's model, or raise if it is no forecaster, or its network selects no inputs."""
    if not isinstance(forecaster, Forecaster):
        rule = "forecaster must be a Forecaster: its features and past rows are those of prices"
        raise_invalid(current_operation(), rule, TypeError, forecaster=type(forecaster).__name__)
    model: object = forecaster.model
    if isinstance(model, WindowNetwork):
        rule = "the network must select its inputs, and one on look-back windows reads all that it is given"
        rule += "; see `importance`, and fit it with a shorter lookback or fewer symbols"
        raise_invalid(current_operation(), rule, lookback=model.config.lookback)
    if not isinstance(model, InputSelection):
        rule = "forecaster must have a network that selects its inputs (models.InputSelection), as HarLstm does"
        raise_invalid(current_operation(), rule, model=type(model).__name__)
    check_no_extra_terms(forecaster.model.har.config, "fit the forecaster without them")
    return model
