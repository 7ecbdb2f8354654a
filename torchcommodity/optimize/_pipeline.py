"""Optimized variants of a forecaster: each method separately, and a combination."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit.arguments import operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarchConfig, HarNetwork, InputSelection, build_model
from torchcommodity.optimize._batches import BatchInputs, EveryRow
from torchcommodity.optimize._compile.compile import compile
from torchcommodity.optimize._distill import distill
from torchcommodity.optimize._importance import correction_importance, prune_inputs, prune_rows
from torchcommodity.optimize._mixed_precision import mixed_precision
from torchcommodity.optimize._prune import prune
from torchcommodity.optimize._prune_units import prune_units
from torchcommodity.optimize._quantize import quantize
from torchcommodity.optimize._train import fine_tune
from torchcommodity.training import ModelInputs, Progress, from_toml, network_parameters, to_toml

ORIGINAL, NO_NETWORK, COMBINED = "original", "no network", "combined"
STUDENT_UNITS, LEARNING_RATE = 4, 3e-3  # of the network that is distilled


class Variant(NamedTuple):
    """Forecaster, and the module to call for its forecasts."""

    forecaster: Forecaster
    module: nn.Module  # arguments of `ModelInputs.batch` -> quantiles of the last row
    note: str = ""


class AllRowsForecaster(EveryRow):
    """Unoptimized forecast: compute the quantiles of every row and return those of the last."""

    def forward(self, *inputs: Tensor | None) -> Tensor:
        return super().forward(*inputs)[:, -1]


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

    A method that the model does not allow is left out; the note of the original says which and why in short. The
    function of the method, such as `prune_units`, says it for every layer.

    Args:
        forecaster: forecaster with a network, fitted on `inputs`.
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
        ValueError: the model has no network.
    """
    network = forecaster.model
    if not network_parameters(network):
        raise_invalid("pipeline", "forecaster must have a network", model=type(network).__name__)

    def tuned(pruned: Forecaster) -> Variant:
        return _eager(fine_tune(pruned.to(device), inputs, epochs=min(epochs, 3)).to("cpu"))

    def with_units_pruned() -> Variant:
        name = network.recurrence
        units: Any = network.get_submodule(name).hidden_size if name else None
        amount = {"amount": 0.75} if units is None else {"units": max(units // 4, 1)}
        return tuned(prune_units(forecaster, **amount))

    def distilled() -> Variant:
        teacher, student = forecaster.to(device), _small_student(forecaster, seed).to(device)
        result = distill(teacher, student, inputs, epochs=epochs, learning_rate=LEARNING_RATE)
        return _eager(result.model.to("cpu"))

    def with_fewer_inputs(pruned: Forecaster) -> Forecaster:
        scores = correction_importance(pruned, inputs)
        return prune_rows(prune_inputs(pruned, scores), scores)

    every_row = network.lookback is None  # else it forecasts the last row only
    methods: dict[str, Callable[[], Variant]] = {
        **({"last row only": lambda: _eager(forecaster)} if every_row else {}),
        "80 % of weights pruned": lambda: tuned(prune(forecaster, 0.8)),
        "75 % of units pruned": with_units_pruned,
        "inputs and rows pruned": lambda: _eager(with_fewer_inputs(forecaster)),
        "distilled": distilled,
        "int8": lambda: _eager(quantize(forecaster)),
        "bfloat16 network": lambda: _eager(mixed_precision(forecaster)),
        "float32 prices": lambda: Variant(forecaster, Float32Forecaster(network)),
    }
    if compiled:
        methods["compiled"] = lambda: _compiled(forecaster, example)
    original = Variant(forecaster, AllRowsForecaster(network) if every_row else network.eval())
    variants, refusals = {ORIGINAL: original}, list[str]()
    for done, (name, apply) in enumerate(methods.items()):
        if progress is not None:
            progress(done, len(methods) + 1, name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                variants[name] = apply()
            except (ValueError, RuntimeError) as error:
                refusals.append(f"{name} ({_in_short(error)})")
    if refusals:
        variants[ORIGINAL] = original._replace(note=f"Left out: {', '.join(refusals)}")
    student = variants.get("distilled", original).forecaster
    if isinstance(student.model, InputSelection) and student.model.har.shrink.any():
        student = prune_rows(student, correction_importance(student, inputs))
    small = quantize(student)
    variants[COMBINED] = _compiled(small, example) if "compiled" in variants else _eager(small)
    # the econometric part without a network: a lower bound on the time of eager variants
    without = HarGarchConfig(network.har.config).build(network.har.assets)
    without.har.set_price_scale(network.har.scale)
    without.har.load_state_dict(network.har.state_dict())
    variants[NO_NETWORK] = _eager(replace(forecaster, model=without))
    return variants


def _in_short(error: Exception) -> str:
    """The rule of an error, without its operation, details of layers, and what was received.

    >>> _in_short(ValueError("prune_units: the model must have units (lstm: has two layers); got model='Lstm'"))
    'the model must have units'
    """
    line = re.sub(r"^\w+: ", "", str(error).partition("\n")[0])
    return re.split(r"; | \(|\. ", line)[0].rstrip(".")


def _small_student(teacher: Forecaster, seed: int) -> Forecaster:
    """A forecaster with the econometric part of the teacher, and a network of a few units with random weights."""
    model = teacher.model
    student = min(_smaller_models(model, seed), key=_size, default=None)
    if student is None:
        rule = f"a student needs a setting of more than {STUDENT_UNITS} units with which its network is smaller"
        raise_invalid("pipeline", rule, settings=", ".join(model.config.numbers()) or "none")
    # the econometric part, and the calibration of the outputs of a network on windows
    state = {key: x for key, x in model.state_dict().items() if key.startswith("har.") or "." not in key}
    student.load_state_dict(state, strict=False)
    settings = to_toml(replace(from_toml(teacher.record.settings, model.config), model=student.config))
    return replace(teacher, model=student.eval(), record=replace(teacher.record, settings=settings))


def _smaller_models(model: HarNetwork, seed: int) -> Iterator[HarNetwork]:
    """Models one of whose numbers, such as that of hidden units, is that of the student's units."""
    for name, value in model.config.numbers().items():
        if type(value) is int and value > STUDENT_UNITS and name != "lookback":
            try:
                smaller = build_model(model.config.with_numbers({name: STUDENT_UNITS}), model.har.assets, seed)
            except ValueError:  # such as units that heads of attention do not divide
                continue
            if _size(smaller) < _size(model):
                yield smaller


def _size(model: HarNetwork) -> int:
    return sum(x.numel() for x in network_parameters(model))


def _eager(forecaster: Forecaster) -> Variant:
    return Variant(forecaster, forecaster.model.eval())


def _compiled(forecaster: Forecaster, example: BatchInputs) -> Variant:
    result = compile(forecaster, [example], dynamic=False, fullgraph=True)
    return Variant(forecaster, result.model, result.summary)
