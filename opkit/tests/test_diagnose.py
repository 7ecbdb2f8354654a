"""`opkit.diagnose`: the kind and line of each fault, and no errors in correct models."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import broken_models as broken
import pytest
import torch
from correct_models import CORRECT, AnyInputs, MakeCase, Stateful, TwoInputs, WithLoss, batch, mse
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import torch_opkit as opkit


def fault_location(source: Any) -> str:
    """File and line of the `# fault` comment; empty without one."""
    if source is broken.DetachedInFunction:
        source = broken._activate_detached
    if source is broken.UsesZeroBackward:
        source = broken.ZeroBackward
    lines, first = inspect.getsourcelines(source)
    numbers = [first + i for i, line in enumerate(lines) if "# fault" in line]
    return f"{inspect.getsourcefile(source)}:{numbers[0]}" if numbers else ""


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "model"), broken.BROKEN, ids=lambda x: getattr(x, "__name__", x))
def test_diagnose_finds_the_fault_and_its_line(kind: str, model: type[nn.Module]) -> None:
    torch.manual_seed(0)
    diagnosis = opkit.diagnose(model(), batch(), mse)
    assert {finding.kind for finding in diagnosis.errors} == {kind}, str(diagnosis)
    if fault_location(model):
        assert diagnosis[0].location == fault_location(model), str(diagnosis)
    assert diagnosis[0].fix


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "loss"), broken.LOSSES, ids=lambda x: getattr(x, "__name__", x))
def test_diagnose_finds_a_fault_of_the_loss(kind: str, loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    diagnosis = opkit.diagnose(broken.TwoLayers(), batch(), loss)
    assert {finding.kind for finding in diagnosis.errors} == {kind}, str(diagnosis)
    assert not fault_location(loss) or diagnosis[0].location == fault_location(loss)


def test_diagnose_blames_the_softmax_and_not_the_mask_of_missing_returns() -> None:
    torch.manual_seed(0)
    loss = lambda output, target: broken.sharpe_loss((output * target).T)  # noqa: E731  # masks NaN, of which there is none
    diagnosis = opkit.diagnose(broken.SoftmaxOfOne(), batch(), loss)
    assert diagnosis[0].location == fault_location(broken.SoftmaxOfOne), str(diagnosis)


SLOW = {"checkpoint"}  # it imports much


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CORRECT]
)
def test_diagnose_finds_no_errors_in_a_correct_model(name: str) -> None:
    torch.manual_seed(0)
    model, inputs, loss = CORRECT[name]()
    diagnosis = opkit.diagnose(model, inputs, loss)
    assert diagnosis.ok, str(diagnosis)
    assert str(diagnosis).startswith("ok: ")


def loss_of_model(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return mse(model(x), y)


def signatures() -> dict[str, MakeCase]:
    model, (x, y) = broken.TwoLayers(), batch()
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    closure: Any = lambda: mse(model(x), y)  # noqa: E731
    return {
        "output and target": lambda: (model, [x, y], mse),
        "output": lambda: (model, x, lambda output: output.square().mean()),
        "output of a pair": lambda: (model, (x, y), lambda output: output.square().mean()),
        "model and batch": lambda: (model, (x, y), lambda model, batch: mse(model(batch[0]), batch[1])),
        "model, inputs and target": lambda: (model, (x, y), loss_of_model),
        "batch": lambda: (model, {"x": x, "y": y}, lambda batch: mse(model(batch["x"]), batch["y"])),
        "nothing": lambda: (model, None, closure),
        "keywords": lambda: (model, (x, y), lambda *, output, target: mse(output, target)),
        "inputs by name": lambda: (model, ({"x": x}, y), mse),
        "data loader": lambda: (model, loader, nn.MSELoss()),
        "iterator": lambda: (model, iter(loader), mse),
        "no loss function": lambda: (WithLoss(), {"x": x, "labels": y}, None),  # type: ignore[return-value]
        "no loss function, arguments": lambda: (WithLoss(), (x, y), None),  # type: ignore[return-value]
        "two inputs": lambda: (TwoInputs(), (x, x, y), mse),
        "any inputs": lambda: (AnyInputs(), (x, x), lambda output: output.square().mean()),
        "any inputs and a target": lambda: (AnyInputs(), (x, x, y), mse),
        "any inputs, no loss function": lambda: (AnyInputs(loss=True), (x, x), None),  # type: ignore[return-value]
        "a wrapper": lambda: (nn.DataParallel(model), (x, y), lambda output: output.square().mean()),
    }


@pytest.mark.parametrize("name", signatures())
def test_diagnose_takes_losses_of_any_signature(name: str) -> None:
    diagnosis = opkit.diagnose(*signatures()[name]())
    assert diagnosis.ok, str(diagnosis)


def test_diagnose_refuses_a_batch_that_does_not_fit_the_loss() -> None:
    with pytest.raises(ValueError, match=r"loss_fn takes \(output, target, weight\), but the batch has 1 targets"):
        opkit.diagnose(broken.TwoLayers(), batch(), lambda output, target, weight: output.mean())
    for empty in ([], (), {}):
        with pytest.raises(
            ValueError, match=f"batch must hold the inputs of the model; got an empty {type(empty).__name__}"
        ):
            opkit.diagnose(broken.TwoLayers(), empty, mse)
    with pytest.raises(TypeError, match=r"loss_fn must be a function, .*; got 'mse'"):
        opkit.diagnose(broken.TwoLayers(), batch(), "mse")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"loss_fn must be .*; got the class MSELoss"):
        opkit.diagnose(broken.TwoLayers(), batch(), nn.MSELoss)
    with pytest.raises(TypeError, match=r"model must be an nn\.Module; got function"):
        opkit.diagnose(lambda x: x, batch(), mse)  # type: ignore[arg-type]


def test_diagnose_names_values_that_are_not_finite() -> None:
    x, y = batch()
    (finding,) = opkit.diagnose(broken.TwoLayers(), (x, y.log()), mse)
    assert (finding.kind, finding.names) == ("input_not_finite", ("batch[1]",))
    model = broken.TwoLayers()
    model.last.weight.data.fill_(torch.nan)
    (finding,) = opkit.diagnose(model, (x, y), mse)
    assert (finding.kind, finding.names) == ("parameter_not_finite", ("last.weight",))


def test_diagnose_names_disabled_gradients() -> None:
    with torch.no_grad():
        assert opkit.diagnose(broken.TwoLayers(), batch(), mse).errors[0].kind == "no_grad"
    with torch.inference_mode():
        model = broken.TwoLayers()
    assert opkit.diagnose(model, batch(), mse).errors[0].kind == "inference_tensor"


def test_diagnosis_tells_a_crash_from_a_fault() -> None:
    assert opkit.diagnose(broken.Crashes(), batch(), mse).crashed
    assert not opkit.diagnose(broken.Detached(), batch(), mse).crashed


def test_diagnose_restores_attributes_and_gradients() -> None:
    model = Stateful()
    mse(model(batch()[0]), batch()[1]).backward()
    state, log, gradient = model.state, list(model.log), model.first.weight.grad
    assert gradient is not None
    before = gradient.clone()
    opkit.diagnose(model, batch(), mse)
    assert model.state is state
    assert model.log == log
    assert model.first.weight.grad is gradient
    assert gradient.equal(before)


def test_diagnose_leaves_the_model_unchanged() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    opkit.diagnose(model, batch(), mse)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in model.modules())


def test_diagnose_notes_some_frozen_layers() -> None:
    model = broken.TwoLayers()
    model.first.requires_grad_(False)
    diagnosis = opkit.diagnose(model, batch(), mse)
    assert diagnosis.ok
    assert [(finding.kind, finding.severity) for finding in diagnosis] == [("frozen", "note")]


def test_diagnose_notes_a_layer_with_zero_gradients() -> None:
    model = broken.TwoLayers()
    torch.nn.init.zeros_(model.last.weight)  # the layer before a head initialized to zero learns from step two on
    (note,) = opkit.diagnose(model, batch(), mse)
    assert (note.kind, note.severity, note.names) == ("zero_gradient", "note", ("first.weight", "first.bias"))


def test_diagnosis_prints_text_and_json() -> None:
    diagnosis = opkit.diagnose(broken.Detached(), batch(), mse)
    assert "error: detach" in str(diagnosis)
    assert "first.weight, first.bias" in str(diagnosis)
    content = json.loads(diagnosis.json())
    assert (content["ok"], content["findings"][0]["kind"]) == (False, "detach")


def _regression() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3), torch.randn(16, 1)


def test_diagnose_warns_of_a_loss_that_grows_with_the_batch() -> None:
    diagnosis = opkit.diagnose(nn.Linear(3, 1), _regression(), nn.MSELoss(reduction="sum"))
    assert [(f.severity, f.kind) for f in diagnosis] == [("warning", "batch_size")], str(diagnosis)
    assert diagnosis.ok


def test_diagnose_notes_batch_normalization_in_training_mode() -> None:
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    diagnosis = opkit.diagnose(model, _regression(), mse)
    assert [(f.severity, f.kind, f.names) for f in diagnosis] == [("note", "batch_norm", ("1",))], str(diagnosis)
    assert not list(opkit.diagnose(model.eval(), _regression(), mse))


def test_diagnose_notes_a_batch_that_requires_gradients() -> None:
    x, y = _regression()
    diagnosis = opkit.diagnose(nn.Linear(3, 1), (x.requires_grad_(), y), mse)
    assert [(f.severity, f.kind, f.names) for f in diagnosis] == [("note", "batch_requires_grad", ("batch[0]",))]


def test_diagnose_warns_where_the_first_axis_may_be_time() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(5, 4), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.layer(x)[0])

    for shape, severity in (((20, 8), "warning"), ((32, 20), "error")):
        diagnosis = opkit.diagnose(Model(), (torch.randn(*shape, 5), torch.randn(*shape, 1)), mse)
        assert [(f.severity, f.kind) for f in diagnosis] == [(severity, "batch_mixed")], str(diagnosis)


def test_diagnose_counts_the_gradients_of_a_custom_op() -> None:
    @torch.library.custom_op("diagnose_test::scaled", mutates_args=())
    def scaled(x: Tensor, weight: Tensor) -> Tensor:
        return x * weight

    scaled.register_fake(lambda x, weight: torch.empty_like(x))
    scaled.register_autograd(lambda ctx, grad: grad)

    class Model(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return scaled(super().forward(x), torch.ones(1))

    diagnosis = opkit.diagnose(Model(3, 1), _regression(), mse)
    assert diagnosis[0].kind == "wrong_backward"
    assert "expected 2, got 1" in diagnosis[0].message
