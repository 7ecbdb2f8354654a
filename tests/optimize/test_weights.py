"""Weights that are special: computed by hooks or parametrizations, packed, tied, not there yet, not finite."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.nn.utils import prune as torch_prune

from torchcommodity.optimize import fine_tune, model_size, prune, prune_units, quantization_report, quantize, sparsity

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
X_GAP = X.masked_fill(X > 1, torch.nan)
MSE = nn.functional.mse_loss


class Keywords(nn.Module):
    """Takes keyword arguments, returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
        return {"logits": self.last(torch.relu(self.first(x))) * scale}


@pytest.mark.parametrize("wrap", [parametrizations.weight_norm, parametrizations.spectral_norm])
def test_quantize_keeps_a_parametrization_and_prune_leaves_it(wrap: Any) -> None:
    model = nn.Sequential(wrap(nn.Linear(6, 5)), nn.Linear(5, 2)).eval()
    report = quantization_report(model, quantize(model), X)
    assert report.relative_error is not None
    assert report.relative_error < 0.02
    sparse = prune(model, 0.5)
    assert next(row.note for row in sparsity(sparse).layers if row.name == "0.weight").startswith("parametrized by")
    assert torch.equal(sparse[0].weight, model[0].weight)


def test_weights_of_old_hooks_are_copied_after_a_backward_pass() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2))
    torch_prune.l1_unstructured(model[0], "weight", 0.5)  # type: ignore[no-untyped-call]
    model(X).sum().backward()
    assert sparsity(model).zeros == 15
    assert list(quantize(model).state_dict())[-1] == "1.parametrizations.weight.original1"
    assert list(prune(model, 0.75).state_dict()) == ["0.bias", "0.weight", "1.weight", "1.bias"]


def test_zeros_of_a_packed_lstm_stay_zero_in_training() -> None:
    batches = [(torch.randn(3, 2, 4), torch.randn(3, 2, 5))]
    model = prune(nn.LSTM(4, 5), 0.5, permanent=False)
    model(batches[0][0])[0].sum().backward()
    assert sparsity(model).share == 0.5  # a copy of a module that holds results with gradients
    tuned = fine_tune(model, batches, lambda y, target: MSE(y[0], target), learning_rate=0.1)
    assert sparsity(tuned).share == 0.5
    assert list(tuned.state_dict()) == list(nn.LSTM(4, 5).state_dict())


def test_copies_do_not_share_the_class_of_a_parametrized_layer() -> None:
    model = prune(nn.Linear(6, 5), 0.5, permanent=False)
    prune(model, 0.8)
    quantize(model)
    assert (model(X) == nn.functional.linear(X, model.weight, model.bias)).all()


def test_tied_weights_stay_tied_and_count_once() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    model[2].weight = model[0].weight
    tuned = fine_tune(prune(model, 0.5), [(X, X)], MSE)
    assert tuned[2].weight is tuned[0].weight
    assert sparsity(tuned).weights == 36
    small = quantize(model)
    assert small[2].parametrizations.weight.original0 is small[0].parametrizations.weight.original0
    assert model_size(small).parameters == 36 + 6 + 12


def test_keyword_arguments_and_dicts_are_accepted() -> None:
    model, example = Keywords().eval(), {"x": X}
    assert quantization_report(model, quantize(model), example).max_error
    settings: Any = {"batches": [(example, torch.ones(4, 2))], "loss_fn": lambda y, target: MSE(y["logits"], target)}
    assert sparsity(prune(model, 0.5, method="gradient", **settings)).share == 0.5
    assert prune_units(model, 0.5, example=example).first.out_features == 4


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.LazyLinear(3), "prune: model must be initialized; call it on one batch first; got uninitialized='weight'"),
        (nn.ReLU(), r"prune: model must have a network with weights to prune \(it has no parameters\)"),
        (nn.Embedding(3, 3), r"weights to prune \(embedding: few inputs read each row\)"),
        (nn.LayerNorm((3, 3)), r"weights to prune \(normalization\)"),
        (nn.Linear(2, 2).requires_grad_(False), ""),
    ],
    ids=["lazy", "no weights", "embedding", "layer norm", "frozen"],
)
def test_prune_accepts_or_refuses_in_words(model: nn.Module, message: str) -> None:
    if not message:
        settings: Any = {"batches": [(torch.ones(1, 2), torch.ones(1, 2))], "loss_fn": MSE}
        assert not prune(model, 0.5, method="gradient", **settings).weight.requires_grad
        return
    with pytest.raises(ValueError, match=message):
        prune(model, 0.5)


@pytest.mark.parametrize(
    ("batches", "loss_fn", "message"),
    [
        ([], MSE, "batches must hold at least one batch"),
        ([(X, X)], None, "batches need a loss_fn"),
        ([(X, X)], lambda y, target: y - target, r"the loss must be a scalar Tensor; reduce it with \.mean\(\)"),
        ([(X, X * torch.nan)], MSE, "the loss must be finite"),
        ([(X, X)], lambda y, target: MSE(y.detach(), target), r"must have a gradient; opkit\.diagnose"),
        (
            [(X, X_GAP)],
            lambda y, target: (y - target).square().nanmean(),
            "gradients must be finite; .* invalid='weight'",
        ),
        (None, None, 'method="gradient" needs batches and loss_fn'),
    ],
    ids=["empty", "no loss", "not a scalar", "NaN", "detached", "NaN gradient", "no batches"],
)
def test_prune_by_gradient_refuses_bad_batches_in_words(batches: Any, loss_fn: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prune(nn.Linear(6, 6), 0.5, method="gradient", batches=batches, loss_fn=loss_fn)


@pytest.mark.parametrize(
    ("batches", "settings", "message"),
    [
        ([(torch.ones(4, 7), X)], {}, r"fine_tune: the model does not run on float32 \(4, 7\): mat1 and mat2"),
        ((X, X), {}, r"fine_tune: batches must be an iterable of batches, such as .* \[\(inputs, target\)\]"),
        ([(X, X)], {"loss_fn": "mse"}, r"fine_tune: loss_fn must be a function loss_fn\(output, target\); got str"),
        ([(X, X)], {"optimizer": "adam"}, r"fine_tune: optimizer must be a class of torch\.optim.*; got str"),
    ],
    ids=["shape", "one batch", "loss", "optimizer"],
)
def test_fine_tune_names_what_does_not_fit(batches: Any, settings: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        fine_tune(nn.Linear(6, 6), batches, **{"loss_fn": MSE, **settings})


def test_prune_of_some_layers_leaves_the_others() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2))
    sparse = prune(model, 0.5, layers=["1", "2"])
    assert next(row.zeros for row in sparsity(sparse).layers if not row.note) == 0
    assert sum(row.zeros for row in sparsity(sparse).layers) == 40
    with pytest.raises(ValueError, match=r"prune: layers must be among 0, 1, 1\.0, 1\.1, 2; got layers=\['3'\]"):
        prune(model, 0.5, layers=["3"])
    with pytest.raises(ValueError, match=r"prune: model must have .*in another layer than those of layers="):
        prune(model, 0.5, layers=["1.1"])
    with pytest.raises(
        TypeError, match=r"prune: layers must be a list of paths, such as \['encoder'\]; got layers='1'"
    ):
        prune(model, 0.5, layers="1")


class Cut(nn.Module):
    """A layer whose output has no gradient, and a factor that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).detach() * x


def test_fine_tune_says_that_the_loss_does_not_reach_the_network() -> None:
    x = X.clone().requires_grad_()  # so that the loss has a gradient
    with pytest.raises(ValueError, match=r"fine_tune: the loss must depend on the parameters that are trained; opkit"):
        fine_tune(Cut(), [(x, X)], MSE)
