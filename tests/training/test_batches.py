"""Splits and steps: no target of the training split reaches the validation split; weights sum to the mean of means."""

import torch

from torchcommodity.data import Panel
from torchcommodity.models import Har, HarConfig
from torchcommodity.training import make_splits, model_inputs
from torchcommodity.training._batches import TrainingBatch, make_loader, plan_epoch


def test_make_splits_training_targets_end_before_validation(panel: Panel) -> None:
    har, inputs, start = Har(2, HarConfig()), model_inputs(panel, 126), 1000
    training, validation = make_splits(har, inputs, start)
    later = inputs._replace(prices=inputs.prices.clone())
    later.prices[start:] *= 2
    assert torch.equal(make_splits(har, later, start)[0].targets.nan_to_num(), training.targets.nan_to_num())
    for i, h in enumerate(har.config.horizons):
        assert training.targets[0, start - h :, i].isnan().all()
        assert training.targets[0, 252 : start - h, i].isfinite().any()
        assert validation.targets[0, :start, i].isnan().all()
        assert validation.targets[0, start : len(panel) - h, i].isfinite().any()


def test_plan_epoch_weights_of_micro_batches_sum_to_the_mean_of_means() -> None:
    torch.manual_seed(0)
    targets = torch.randn(1, 57, 3, 2)
    targets[:, :, 0, 1] = torch.nan
    targets[:, 20:, 1] = torch.nan
    loss = torch.randn_like(targets)
    split = TrainingBatch(None, targets)  # type: ignore[arg-type]  # planning needs no inputs
    trained = torch.tensor([True, True, False])
    generator = torch.Generator().manual_seed(1)
    for step in plan_epoch(split, trained, generator, window=5, batch_size=4, micro_batches=3, levels=1):
        starts = [start for part in step.micro_batches for start in part]
        step_targets, step_loss = (torch.cat([x[0, s : s + 5] for s in starts]) for x in (targets, loss))
        means = torch.where(step_targets.isfinite(), step_loss, torch.nan).nanmean((0, 2))[trained].nanmean()
        weighted = (torch.where(step_targets.isfinite(), step_loss, 0.0).sum((0, 2)) * step.weight).sum()
        torch.testing.assert_close(weighted, means)


def test_plan_epoch_uses_every_full_window_once() -> None:
    split = TrainingBatch(None, torch.zeros(1, 57, 1, 1))  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(1)
    steps = plan_epoch(split, torch.tensor([True]), generator, window=5, batch_size=4, micro_batches=1, levels=1)
    starts = sorted(start for step in steps for part in step.micro_batches for start in part)
    assert starts == list(range(starts[0], 53, 5))
    assert 0 <= starts[0] < 5


def test_make_loader_yields_micro_batches_in_order(panel: Panel) -> None:
    training, _ = make_splits(Har(2, HarConfig()), model_inputs(panel, 126), 1000)
    batches = list(make_loader(training, [[300, 500], [400]], 63, 0))
    assert [batch.targets.shape for batch in batches] == [(2, 63, 4, 2), (1, 63, 4, 2)]
    assert torch.equal(batches[1].har_output.features[0], training.har_output.features[0, 400:463])
