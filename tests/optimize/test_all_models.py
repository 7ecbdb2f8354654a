"""Every model of `models.MODELS` goes through every function, or is refused in words."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, build_model
from torchcommodity.optimize import (
    channels_last,
    distill,
    fine_tune,
    mixed_precision,
    model_size,
    prune,
    prune_units,
    quantization_report,
    quantize,
    sparsity,
    weight_importance,
)
from torchcommodity.training import ModelInputs

Predict = Callable[[Forecaster], Tensor]
LIGHT = ("har-garch", "har-lstm", "har-tcn")
NO_NETWORK = "must have a network with weights to"


@pytest.fixture(params=[name if name in LIGHT else pytest.param(name, marks=pytest.mark.slow) for name in MODELS])
def trained(request: pytest.FixtureRequest, forecaster: Forecaster) -> Forecaster:
    """A forecaster with the model: a network with random weights, which corrects every horizon."""
    har: Any = forecaster.model.har
    model = build_model(MODELS[request.param].config(har=har.config), 2, seed=1).eval()
    model.har.load_state_dict(har.state_dict())
    if hasattr(model, "head"):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            nn.init.normal_(model.head.weight, std=0.3)
    return replace(forecaster, model=model)


def attempt(refusals: dict[str, str], name: str, function: Callable[[], Forecaster]) -> Forecaster | None:
    """Result, or None for a refusal with the expected words."""
    if name not in refusals:
        return function()
    with pytest.raises(ValueError, match=refusals[name]):
        function()
    return None


def name_of(forecaster: Forecaster) -> str:
    return next(name for name, entry in MODELS.items() if isinstance(forecaster.model, entry.model))


CASES: dict[str, tuple[Callable[[Forecaster], Forecaster], dict[str, str]]] = {
    "prune": (lambda f: prune(f, 0.5), {"har-garch": NO_NETWORK}),
    "quantize": (quantize, {"har-garch": NO_NETWORK}),
    "mixed_precision": (mixed_precision, {}),
    "channels_last": (
        channels_last,
        dict.fromkeys(set(MODELS) - {"har-regime", "har-mlp-lstm"}, "must have a 2-D convolution"),
    ),
    "prune_units": (
        lambda f: prune_units(f, 0.5),
        dict.fromkeys(
            ["har-garch", "har-tcn", "har-attention", "har-orthogonal-lstm"],
            "must read one recurrent layer and nothing",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_model_is_accepted_and_saved_or_refused(
    case: str, trained: Forecaster, predict: Predict, tmp_path: Path
) -> None:
    function, refusals = CASES[case]
    before = predict(trained)
    result = attempt(refusals, name_of(trained), lambda: function(trained))
    assert torch.equal(predict(trained).nan_to_num(), before.nan_to_num())  # the argument did not change
    if result is not None:
        assert predict(result).isfinite().equal(before.isfinite())
        result.save(tmp_path / "forecaster")
        loaded = predict(Forecaster.load(tmp_path / "forecaster"))
        assert torch.equal(loaded.nan_to_num(), predict(result).nan_to_num())


def test_every_network_is_quantized_with_little_error(trained: Forecaster, inputs: ModelInputs) -> None:
    if name_of(trained) == "har-garch":
        return
    small = quantize(trained)
    report = quantization_report(trained, small, inputs)
    assert report.relative_error is not None
    assert report.relative_error < 0.01
    assert model_size(small).bytes < 0.6 * model_size(trained).bytes
    reasons = {"", "one axis: a bias or a scale", "econometric part, calibrated in closed form"}
    unknown = {f"its use in {layer} is not known" for layer in ("EwmVolatility", "Indicators")}
    assert {row.note for row in report.weights} <= reasons | unknown


@pytest.mark.slow
def test_every_network_is_pruned_by_gradient_fine_tuned_and_distilled(trained: Forecaster, inputs: ModelInputs) -> None:
    if name_of(trained) == "har-garch":
        with pytest.raises(ValueError, match=NO_NETWORK):
            weight_importance(trained, inputs)
        return
    scores = weight_importance(trained, inputs)
    assert scores.by_batch.shape == (16, len(scores.weights))
    sparse = prune(trained, 0.5, method="gradient", batches=inputs)
    assert sparsity(sparse).share == pytest.approx(0.5, abs=0.01)
    tuned = fine_tune(sparse, inputs, epochs=1)
    assert sparsity(tuned).zeros >= sparsity(sparse).zeros
    result = distill(trained, prune(trained, 0.5), inputs, epochs=1)
    assert "; distilled from" in result.model.record.note


def test_functions_say_what_needs_a_forecaster(forecaster: Forecaster, inputs: ModelInputs) -> None:
    module: Any = nn.Linear(3, 2)
    with pytest.raises(TypeError, match=r"prune: batches of prices \(ModelInputs\) need a Forecaster"):
        prune(module, 0.5, method="gradient", batches=inputs)
    with pytest.raises(TypeError, match=r"fine_tune: batches of prices \(ModelInputs\) need a Forecaster"):
        fine_tune(module, inputs)
    with pytest.raises(ValueError, match=r"fine_tune: batches need a loss_fn\(output, target\)"):
        fine_tune(forecaster, [(torch.ones(1), torch.ones(1))])
    for function in (lambda x: prune(x, 0.5), quantize, mixed_precision, model_size, channels_last, sparsity):
        with pytest.raises(TypeError, match=r"model must be an nn\.Module or a Forecaster; got model='dict'"):
            function({})
