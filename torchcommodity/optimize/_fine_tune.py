"""Training of a pruned model that keeps its zeros."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import cast

import torch

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarNetwork
from torchcommodity.opkit.arguments import check_number, operation, raise_invalid
from torchcommodity.optimize._batches import batch_loss
from torchcommodity.optimize._calls import Loss
from torchcommodity.optimize._masks import copy_without_masks, mask_zeros, remove_masks
from torchcommodity.optimize._module import Model, restored_mode
from torchcommodity.optimize._train import MakeOptimizer, train_epochs
from torchcommodity.optimize._weights import prunable_weights
from torchcommodity.training import ModelInputs, TrainConfig, train


@operation("fine_tune")
def fine_tune(
    model: Model,
    batches: Iterable[object] | ModelInputs,
    loss_fn: Loss | None = None,
    *,
    epochs: int = 3,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-3,
    config: TrainConfig | None = None,
    symmetry: float = 0.5,
    seed: int = 0,
) -> Model:
    """Continue training a pruned model; weights that are zero stay zero.

    A module is trained for all epochs on all batches. A forecaster is trained on prices, with early stopping on later
    rows: its econometric part and the corrected horizons do not change, and if no epoch improves on the econometric
    baseline in validation, the pruned weights are kept, with a note in the record.

    Args:
        model: pruned module, or a forecaster with a pruned network; not changed.
        batches: for a module an iterable of (inputs, target) that can be read once per epoch, see `prune`; for a
            forecaster its training and validation prices.
        loss_fn: of a module: loss_fn(output, target), a scalar.
        epochs: of a module: passes over the batches.
        optimizer: of a module: a class of torch.optim, or a functools.partial of one.
        learning_rate: of a module: learning rate of the optimizer.
        config: of a forecaster: training settings; three epochs by default.
        symmetry: of a forecaster: as in `FitConfig`.
        seed: of a forecaster: as in `forecast.fit`.

    Returns:
        A copy, trained, in the same training mode.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster, the batches are not those of such a model,
            or a number is text.
        ValueError: there is no weight to prune, no parameter to train or no batch, or a loss is not a finite scalar
            with a gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> sparse = optimize.prune(torch.nn.Linear(4, 2), 0.5)
        >>> batches = [(torch.randn(16, 4), torch.randn(16, 2)) for _ in range(5)]
        >>> tuned = optimize.fine_tune(sparse, batches, torch.nn.functional.mse_loss, learning_rate=0.01)
        >>> torch.equal(tuned.weight == 0, sparse.weight == 0), torch.equal(tuned.weight, sparse.weight)
        (True, False)
    """
    check_number("fine_tune", learning_rate=learning_rate, symmetry=symmetry)
    if isinstance(model, Forecaster):
        if not isinstance(batches, ModelInputs):
            rule = "a Forecaster is fine-tuned and validated on prices: batches must be ModelInputs, see model_inputs()"
            raise_invalid("fine_tune", rule, TypeError, batches=type(batches).__name__)
        return cast(Model, _fine_tune_forecaster(model, batches, config, symmetry, seed))
    module = copy_without_masks(model)
    mask_zeros(prunable_weights(module))
    if loss_fn is None:
        raise_invalid("fine_tune", "a module needs a loss_fn(output, target)", loss_fn=None)
    loss = partial(batch_loss, module, loss_fn=loss_fn)
    with restored_mode(module):
        list(train_epochs(module, batches, loss, epochs=epochs, optimizer=optimizer, learning_rate=learning_rate))
    return cast(Model, remove_masks(module))


def _fine_tune_forecaster(
    forecaster: Forecaster, inputs: ModelInputs, config: TrainConfig | None, symmetry: float, seed: int
) -> Forecaster:
    model = cast(HarNetwork, copy_without_masks(forecaster))
    mask_zeros(prunable_weights(model))
    config = config or replace(TrainConfig.for_frequency(forecaster.frequency), epochs=3)
    result = train(model, inputs, config, symmetry, seed)
    if not result.epoch:
        note = f"{forecaster.record.note}; fine-tuning did not improve it and was discarded"
        return replace(forecaster, record=replace(forecaster.record, note=note))
    model = remove_masks(model)
    model.har.load_state_dict(forecaster.model.har.state_dict())
    note = f"{forecaster.record.note}; fine-tuned, epoch {result.epoch}"
    return replace(forecaster, model=model, record=replace(forecaster.record, note=note))
