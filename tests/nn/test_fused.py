"""`ConvBN1d`, `ConvBN2d` and `LinearBNReLU` against torch's layers: results, running statistics, saved memory."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import torch_opkit as opkit
from torchcommodity import nn, ops

CONVOLUTIONS: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (1, {}, {}),
    (1, {"padding": 1, "bias": False}, {"momentum": 0.3}),
    (1, {"padding": "same", "dilation": 3}, {"affine": False}),
    (1, {"stride": 3, "padding": 2, "groups": 2}, {"momentum": None}),
    (1, {"dilation": 2, "groups": 4}, {"track_running_stats": False}),
    (2, {"padding": 1}, {"eps": 1e-2}),
    (2, {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2), "bias": False}, {}),
    (2, {"padding": "same", "groups": 2}, {"affine": False, "momentum": None}),
]
NORMS: list[dict[str, Any]] = [{}, {"affine": False}, {"momentum": None, "eps": 0.1}, {"track_running_stats": False}]


def reference_convolution(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> torch.nn.Sequential:
    conv, batch_norm = [(torch.nn.Conv1d, torch.nn.BatchNorm1d), (torch.nn.Conv2d, torch.nn.BatchNorm2d)][axes - 1]
    return torch.nn.Sequential(conv(4, 8, 3, **convolution), batch_norm(8, **norm)).double()


def fused_convolution(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> torch.nn.Module:
    return [nn.ConvBN1d, nn.ConvBN2d][axes - 1](4, 8, 3, **convolution, **norm, dtype=torch.double)  # type: ignore[operator]


def assert_layers_equal(layer: torch.nn.Module, reference: torch.nn.Module, x: Tensor) -> None:
    """Three steps of training and one evaluation: outputs, gradients, buffers."""
    states = [list(module.state_dict().values()) for module in (layer, reference)]
    with torch.no_grad():
        for value, expected in zip(*states, strict=True):
            if value.is_floating_point():
                expected.copy_(value.uniform_(0.5, 1.5))
    for _ in range(3):
        assert_steps_equal(layer, reference, x)
        x = 2 * x.flip(0) + 0.5
    assert_steps_equal(layer.eval(), reference.eval(), x)


def assert_steps_equal(layer: torch.nn.Module, reference: torch.nn.Module, x: Tensor) -> None:
    results = []
    for module in (layer, reference):
        leaf = x.clone().requires_grad_()
        y = module(leaf)
        gradients = torch.autograd.grad(y.sin().sum() + y.square().sum(), [leaf, *module.parameters()])
        results.append([y, *gradients, *module.buffers()])
    for value, expected in zip(*results, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("axes", "convolution", "norm"), CONVOLUTIONS)
def test_conv_bn_equals_torch(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> None:
    reference = reference_convolution(axes, convolution, norm)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same'")  # torch's warning about uneven padding
        x = torch.randn(3, 4, *(11, 9)[:axes]).double()
        assert_layers_equal(fused_convolution(axes, convolution, norm), reference, x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_bn_relu_equals_torch(norm: dict[str, Any], bias: bool) -> None:
    layer = nn.LinearBNReLU(5, 7, bias, **norm, dtype=torch.double)
    reference = torch.nn.Sequential(torch.nn.Linear(5, 7, bias), torch.nn.BatchNorm1d(7, **norm), torch.nn.ReLU())
    assert_layers_equal(layer, reference.double(), torch.randn(12, 5).double())


def test_from_modules_shares_parameters() -> None:
    conv, norm = torch.nn.Conv1d(3, 4, 3, padding=1), torch.nn.BatchNorm1d(4)
    layer = nn.ConvBN1d.from_modules(conv, norm)
    x = torch.randn(2, 3, 9)
    before = copy.deepcopy(norm)
    torch.testing.assert_close(layer(x), before(conv(x)))
    torch.testing.assert_close(norm.running_var, before.running_var)
    assert {p.data_ptr() for p in layer.parameters()} == {
        p.data_ptr() for p in (*conv.parameters(), *norm.parameters())
    }
    assert list(nn.ConvBN1d(3, 4, 3).state_dict()) == list(layer.state_dict())
    linear, norm = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4).eval()
    rows = torch.randn(6, 3)
    torch.testing.assert_close(nn.LinearBNReLU.from_modules(linear, norm)(rows), norm(linear(rows)).relu())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.ConvBN1d.from_modules(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(5)),
            "ConvBN1d: norm.num_features must equal conv.out_channels",
        ),
        (
            lambda: nn.ConvBN2d.from_modules(
                torch.nn.Conv2d(3, 4, 3, padding_mode="circular"), torch.nn.BatchNorm2d(4)
            ),
            "ConvBN2d: conv.padding_mode must be \"zeros\"; got padding_mode='circular'",
        ),
        (
            lambda: nn.LinearBNReLU.from_modules(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(5)),
            "LinearBNReLU: norm.num_features must equal linear.out_features",
        ),
        (lambda: nn.ConvBN1d(3, 4, 3)(torch.randn(1, 3, 3)), "conv_bn: training requires more than one value"),
        (lambda: nn.LinearBNReLU(3, 4)(torch.randn(1, 3)), "linear_bn_relu: training requires more than one value"),
    ],
)
def test_fused_layers_reject(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()


def test_conv_bn_causal_padding_is_causal() -> None:
    layer = nn.ConvBN1d(3, 4, 3, padding="causal", dilation=2).eval()
    x = torch.randn(2, 3, 20)
    changed = x.clone()
    changed[..., 12:] = 9.0
    y, z = layer(x), layer(changed)
    assert y.shape == (2, 4, 20)
    assert torch.equal(y[..., :12], z[..., :12])
    assert not torch.equal(y[..., 12], z[..., 12])


def saved_bytes(call: Any) -> int:
    """Bytes that autograd saves for the backward pass."""
    storages: dict[int, int] = {}

    def pack(y: Tensor) -> Tensor:
        storages[y.untyped_storage().data_ptr()] = y.untyped_storage().nbytes()
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        call()
    return sum(storages.values())


def test_fused_layers_save_little_more_than_their_input() -> None:
    x, image, rows = torch.randn(16, 32, 128), torch.randn(8, 16, 20, 20), torch.randn(512, 64)
    for layer, reference, inputs, max_ratio in (
        (nn.ConvBN1d(32, 32, 3, padding=1), reference_convolution(1, {}, {}), x, 0.55),
        (nn.ConvBN2d(16, 16, 3, padding=1), reference_convolution(2, {}, {}), image, 0.55),
        (nn.LinearBNReLU(64, 64), None, rows, 0.4),
    ):
        parts = list(layer.children())
        reference = torch.nn.Sequential(*copy.deepcopy(parts), *([torch.nn.ReLU()] if reference is None else []))
        if hasattr(layer, "padding"):
            reference[0].padding = (1,) * (inputs.dim() - 2)
        leaf = inputs.requires_grad_()
        saved = saved_bytes(lambda: layer(leaf))  # noqa: B023
        assert saved <= max_ratio * saved_bytes(lambda: reference(leaf))  # noqa: B023
        weights = sum(p.nbytes for p in layer.parameters())
        assert saved <= inputs.nbytes + weights + 4096


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("recompute", [True, False])
def test_conv_bn_trains_on_data_as_torch_does(axes: int, recompute: bool) -> None:
    layer, reference = fused_convolution(axes, {"padding": 1}, {}), reference_convolution(axes, {"padding": 1}, {})
    layer.recompute = recompute  # type: ignore[assignment]
    reference.load_state_dict(dict(zip(reference.state_dict(), layer.state_dict().values(), strict=True)))
    x = torch.randn(3, 4, *(11, 9)[:axes]).double()
    for value, expected in zip(*(parameter_gradients(module, x) for module in (layer, reference)), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("recompute", [True, False])
def test_linear_bn_relu_trains_on_data_as_torch_does(recompute: bool) -> None:
    layer = nn.LinearBNReLU(5, 7, dtype=torch.double, recompute=recompute)
    x = torch.randn(12, 5).double()
    reference = torch.nn.Sequential(*copy.deepcopy([*layer.children()]), torch.nn.ReLU())
    for value, expected in zip(*(parameter_gradients(module, x) for module in (layer, reference)), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


def parameter_gradients(module: torch.nn.Module, x: Tensor) -> list[Tensor]:
    y = module(x)
    return [*torch.autograd.grad(y.sin().sum() + y.square().sum(), [*module.parameters()]), *module.buffers()]


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("recompute", [True, False])
def test_fused_layers_have_second_derivatives(data: bool, recompute: bool) -> None:
    for function, x, weight in (
        (ops.linear_bn_relu, torch.randn(6, 3), torch.randn(2, 3)),
        (ops.conv_bn, torch.randn(2, 3, 5), torch.randn(2, 3, 3)),
    ):
        inputs = x.double().requires_grad_(not data), weight.double().requires_grad_()
        assert torch.autograd.gradgradcheck(lambda *inputs: function(*inputs, recompute=recompute)[:2], inputs)  # noqa: B023


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("recompute", [True, False])
def test_fused_layers_compute_needed_products_only(data: bool, recompute: bool) -> None:
    rows = torch.randn(16, 8, requires_grad=not data)
    weight = torch.randn(4, 8, requires_grad=True)
    y = ops.linear_bn_relu(rows, weight, recompute=recompute).output
    with profile(activities=[ProfilerActivity.CPU]) as calls:
        y.sum().backward()
    products = sum(call.count for call in calls.key_averages() if call.key == "aten::mm")
    assert products == 2 - data + recompute  # dweight, dx, z again


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("data", [True, False])
def test_conv_bn_keeps_channels_last(data: bool) -> None:
    layer = nn.ConvBN2d(4, 6, 3, padding=1)
    reference = torch.nn.Sequential(*copy.deepcopy([*layer.children()]))
    reference[0].padding = (1, 1)  # type: ignore[assignment]
    image = torch.randn(2, 4, 5, 7).to(memory_format=torch.channels_last)
    results = []
    for module in (layer, reference, torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")):
        x = image.clone().requires_grad_(not data)
        y = module(x)
        assert y.is_contiguous(memory_format=torch.channels_last)
        inputs = [*module.parameters()] if data else [x, *module.parameters()]
        results.append([y, *torch.autograd.grad(y.square().sum() + y[:, 0].sum(), inputs)])
    for value, expected, compiled in zip(*results, strict=True):
        assert value.stride() == expected.stride() == compiled.stride()
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(compiled, value)


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("recompute", [True, False])
def test_fused_layers_save_their_input_and_one_product_if_they_do_not_recompute(data: bool, recompute: bool) -> None:
    rows, image = (torch.randn(shape, requires_grad=not data) for shape in ((512, 64), (16, 3, 64, 64)))
    linear = nn.LinearBNReLU(64, 32, recompute=recompute)
    conv = nn.ConvBN2d(3, 16, 3, padding=1, recompute=recompute)
    for layer, x, product in ((linear, rows, 512 * 32 * 4), (conv, image, 16 * 16 * 64 * 64 * 4)):
        weights = sum(p.nbytes for p in layer.parameters())
        saved = saved_bytes(lambda: layer(x))  # noqa: B023
        assert x.nbytes <= saved - (0 if recompute else product) <= x.nbytes + weights + 4096
        with torch.no_grad():
            assert saved_bytes(lambda: layer(x)) == 0  # noqa: B023


def test_conv_bn_of_a_missing_value_has_no_gradient() -> None:
    x, weight = torch.randn(3, 4, 9), torch.randn(6, 2, 3, requires_grad=True)
    x[1, 0, 4] = torch.nan
    y = ops.conv_bn(x, weight, groups=2).output
    assert y[:, :3].isnan().all()
    assert y[:, 3:].isfinite().all()
    (gradient,) = torch.autograd.grad(y.nan_to_num().square().sum() + y[:, :3].sum(), weight)
    assert gradient[:3].eq(0).all()
    assert gradient[3:].isfinite().all()


def test_fused_layers_update_running_statistics_when_compiled() -> None:
    torch._dynamo.reset()
    for layer, x in (
        (nn.ConvBN1d(3, 4, 3, momentum=None), torch.randn(2, 3, 9)),
        (nn.LinearBNReLU(3, 4), torch.randn(6, 3)),
    ):
        eager, compiled = copy.deepcopy(layer), torch.compile(layer, fullgraph=True, backend="aot_eager")
        for _ in range(2):
            torch.testing.assert_close(compiled(x), eager(x))
        torch.testing.assert_close(layer.state_dict(), eager.state_dict())
        torch.export.export(layer.eval(), (x,))


def test_fused_operators_are_native_where_the_library_is() -> None:
    if ops.NATIVE:
        for name in ("conv_bn", "conv_bn_backward", "linear_bn_relu", "linear_bn_relu_backward"):
            assert "cpu" in opkit.OPERATORS[f"commodity::{name}"].devices


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.ConvBN2d.from_modules(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4)),  # type: ignore[arg-type]
            "ConvBN2d: conv must be a torch.nn.Conv2d; got conv='Conv1d'",
        ),
        (
            lambda: nn.ConvBN1d.from_modules(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm2d(4)),  # type: ignore[arg-type]
            "ConvBN1d: norm must be a torch.nn.BatchNorm1d; got norm='BatchNorm2d'",
        ),
        (
            lambda: nn.LinearBNReLU.from_modules(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4)),  # type: ignore[arg-type]
            "LinearBNReLU: linear must be a torch.nn.Linear; got linear='Conv1d'",
        ),
        (lambda: nn.LinearBNReLU("3", 4), "LinearBNReLU: in_features must be an int; got in_features='3'"),  # type: ignore[arg-type]
        (lambda: nn.ConvBN1d(3, "4", 3), "ConvBN1d: out_channels must be an int; got out_channels='4'"),  # type: ignore[arg-type]
    ],
)
def test_fused_layers_refuse_arguments_of_another_type(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        make()
