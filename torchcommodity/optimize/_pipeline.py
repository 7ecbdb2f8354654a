"""Optimized variants of a forecaster: each method separately, and a combination."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarch, HarGarchConfig, HarLstmConfig, HarNetwork, build_model, model_name
from torchcommodity.opkit.arguments import operation
from torchcommodity.optimize._benchmark_inputs import BatchInputs
from torchcommodity.optimize._compile.compile import compile
from torchcommodity.optimize._distill import distill
from torchcommodity.optimize._fine_tune import fine_tune
from torchcommodity.optimize._importance import correction_importance, prune_inputs, prune_rows, require_har_lstm
from torchcommodity.optimize._mixed_precision import mixed_precision
from torchcommodity.optimize._prune import prune
from torchcommodity.optimize._prune_units import prune_units
from torchcommodity.optimize._quantize import quantize
from torchcommodity.training import ModelInputs, Progress, from_toml, to_toml

ORIGINAL, NO_NETWORK, COMBINED = "original", "no network", "combined"
STUDENT_UNITS, LEARNING_RATE = 4, 3e-3  # of the network that is distilled


class Variant(NamedTuple):
    """Forecaster, and the module to call for its forecasts."""

    forecaster: Forecaster
    module: nn.Module  # arguments of `ModelInputs.batch` -> quantiles of the last row
    note: str = ""


class AllRowsForecaster(nn.Module):
    """Unoptimized forecast: compute the quantiles of every row and return those of the last."""

    def __init__(self, model: HarNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor | None) -> Tensor:
        har_output = self.model.har(*inputs)
        return self.model.har.quantiles(har_output, self.model.correction(har_output))[:, -1]


class Float32Forecaster(nn.Module):
    """Forecast in float32 throughout."""

    def __init__(self, model: HarNetwork) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor | None) -> Tensor:
        quantiles: Tensor = self.model(*(x.float() if x is not None and x.is_floating_point() else x for x in inputs))
        return quantiles


@operation("pipeline")
def pipeline(
    forecaster: Forecaster,
    inputs: ModelInputs,
    example: BatchInputs,
    *,
    epochs: int = 10,
    compiled: bool = True,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, Variant]:
    """Apply every optimization separately, and combine distillation, row pruning, int8 and compilation.

    Args:
        forecaster: forecaster whose model is a `HarLstm`, fitted on `inputs`.
        inputs: training and validation prices, up to the last row before the test rows.
        example: inputs at batch size 1, for which models are compiled, see `benchmark_inputs`.
        epochs: epochs of distillation, and at most three of fine-tuning.
        compiled: include the compiled variants, which take one to two minutes each.
        seed: random seed of the student's weights, and of dropout.
        device: device of fine-tuning and distillation; variants are on the CPU.
        progress: called as progress(done, total, description).

    Returns:
        Variants by name; the first is the original, the last the econometric part without a network.

    Raises:
        ValueError: the model is not a HarLstm.
    """
    hidden = require_har_lstm(forecaster).config.hidden
    scores = correction_importance(forecaster, inputs)

    def tuned(pruned: Forecaster) -> Variant:
        return _eager(fine_tune(pruned.to(device), inputs, epochs=min(epochs, 3)).to("cpu"))

    def distilled() -> Variant:
        teacher, student = forecaster.to(device), _small_student(forecaster, seed).to(device)
        result = distill(teacher, student, inputs, epochs=epochs, learning_rate=LEARNING_RATE)
        return _eager(result.model.to("cpu"))

    methods: dict[str, Callable[[], Variant]] = {
        ORIGINAL: lambda: Variant(forecaster, AllRowsForecaster(forecaster.model)),
        "last row only": lambda: _eager(forecaster),
        "80 % of weights pruned": lambda: tuned(prune(forecaster, 0.8)),
        "75 % of units pruned": lambda: tuned(prune_units(forecaster, units=max(hidden // 4, 1))),
        "inputs and rows pruned": lambda: _eager(prune_rows(prune_inputs(forecaster, scores), scores)),
        "distilled": distilled,
        "int8": lambda: _eager(quantize(forecaster)),
        "bfloat16 network": lambda: _eager(mixed_precision(forecaster)),
        "float32 prices": lambda: Variant(forecaster, Float32Forecaster(forecaster.model)),
    }
    if compiled:
        methods["compiled"] = lambda: _compiled(forecaster, example)
    variants: dict[str, Variant] = {}
    for done, (name, apply) in enumerate(methods.items()):
        if progress is not None:
            progress(done, len(methods) + 1, name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            variants[name] = apply()
    student = variants["distilled"].forecaster
    if student.model.har.shrink.any():
        student = prune_rows(student, correction_importance(student, inputs))
    small = quantize(student)
    variants[COMBINED] = _compiled(small, example) if compiled else _eager(small)
    # the econometric part without a network: a lower bound on the time of eager variants
    model = HarGarch(forecaster.model.har.assets, HarGarchConfig(forecaster.model.har.config))
    model.har.load_state_dict(forecaster.model.har.state_dict())
    variants[NO_NETWORK] = _eager(replace(forecaster, model=model))
    return variants


def _small_student(teacher: Forecaster, seed: int) -> Forecaster:
    """A forecaster with the econometric part of the teacher, and a network of random weights."""
    har = teacher.model.har
    config = HarLstmConfig(har.config, hidden=STUDENT_UNITS)
    model = build_model(config, har.assets, seed)
    model.har.load_state_dict(har.state_dict())
    given = from_toml(teacher.record.settings, model_name(teacher.model.config))  # a text that names another imports it
    settings = to_toml(replace(given, model=config))
    return replace(teacher, model=model.eval(), record=replace(teacher.record, settings=settings))


def _eager(forecaster: Forecaster) -> Variant:
    return Variant(forecaster, forecaster.model.eval())


def _compiled(forecaster: Forecaster, example: BatchInputs) -> Variant:
    result = compile(forecaster, [example], dynamic=False, fullgraph=True)
    return Variant(forecaster, result.model, result.summary)
