"""conv_bn and linear_bn_relu against torch's own layers: outputs, gradients, running statistics, what is kept."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from torchcommodity import nn, opkit, ops

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


def plain_convolution(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> torch.nn.Sequential:
    conv, batch_norm = [(torch.nn.Conv1d, torch.nn.BatchNorm1d), (torch.nn.Conv2d, torch.nn.BatchNorm2d)][axes - 1]
    return torch.nn.Sequential(conv(4, 8, 3, **convolution), batch_norm(8, **norm)).double()


def fused_convolution(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> torch.nn.Module:
    return [nn.ConvBN1d, nn.ConvBN2d][axes - 1](4, 8, 3, **convolution, **norm, dtype=torch.double)  # type: ignore[operator]


def same_layers(ours: torch.nn.Module, theirs: torch.nn.Module, x: Tensor) -> None:
    """Three steps of training and one evaluation: outputs, gradients, buffers."""
    states = [list(layer.state_dict().values()) for layer in (ours, theirs)]
    with torch.no_grad():
        for mine, other in zip(*states, strict=True):
            if mine.is_floating_point():
                other.copy_(mine.uniform_(0.5, 1.5))
    for _ in range(3):
        same_step(ours, theirs, x)
        x = 2 * x.flip(0) + 0.5
    same_step(ours.eval(), theirs.eval(), x)


def same_step(ours: torch.nn.Module, theirs: torch.nn.Module, x: Tensor) -> None:
    results = []
    for layer in (ours, theirs):
        leaf = x.clone().requires_grad_()
        y = layer(leaf)
        gradients = torch.autograd.grad(y.sin().sum() + y.square().sum(), [leaf, *layer.parameters()])
        results.append([y, *gradients, *layer.buffers()])
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("axes", "convolution", "norm"), CONVOLUTIONS)
def test_conv_bn_is_torchs_pair(axes: int, convolution: dict[str, Any], norm: dict[str, Any]) -> None:
    theirs = plain_convolution(axes, convolution, norm)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using padding='same'")  # torch's own, of uneven padding
        same_layers(fused_convolution(axes, convolution, norm), theirs, torch.randn(3, 4, *(11, 9)[:axes]).double())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_bn_relu_is_torchs_three(norm: dict[str, Any], bias: bool) -> None:
    ours = nn.LinearBNReLU(5, 7, bias, **norm, dtype=torch.double)
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 7, bias), torch.nn.BatchNorm1d(7, **norm), torch.nn.ReLU())
    same_layers(ours, theirs.double(), torch.randn(12, 5).double())


def test_a_layer_made_of_torchs_shares_their_parameters() -> None:
    conv, norm = torch.nn.Conv1d(3, 4, 3, padding=1), torch.nn.BatchNorm1d(4)
    layer = nn.ConvBN1d.of(conv, norm)
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
    torch.testing.assert_close(nn.LinearBNReLU.of(linear, norm)(rows), norm(linear(rows)).relu())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ConvBN1d.of(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(5)), "ConvBN1d: norm must have as many"),
        (
            lambda: nn.ConvBN2d.of(torch.nn.Conv2d(3, 4, 3, padding_mode="circular"), torch.nn.BatchNorm2d(4)),
            "ConvBN2d: conv must be padded with \"zeros\"; got padding_mode='circular'",
        ),
        (
            lambda: nn.LinearBNReLU.of(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(5)),
            "LinearBNReLU: norm must be as wide",
        ),
        (lambda: nn.ConvBN1d(3, 4, 3)(torch.randn(1, 3, 3)), "conv_bn: training needs more than one value"),
        (lambda: nn.LinearBNReLU(3, 4)(torch.randn(1, 3)), "linear_bn_relu: training needs more than one value"),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()


def test_causal_padding_does_not_look_ahead() -> None:
    layer = nn.ConvBN1d(3, 4, 3, padding="causal", dilation=2).eval()
    x = torch.randn(2, 3, 20)
    later = x.clone()
    later[..., 12:] = 9.0
    y, z = layer(x), layer(later)
    assert y.shape == (2, 4, 20)
    assert torch.equal(y[..., :12], z[..., :12])
    assert not torch.equal(y[..., 12], z[..., 12])


def kept(call: Any) -> int:
    """Bytes of the storages that autograd keeps."""
    found: dict[int, int] = {}

    def pack(y: Tensor) -> Tensor:
        found[y.untyped_storage().data_ptr()] = y.untyped_storage().nbytes()
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        call()
    return sum(found.values())


def test_little_more_than_the_input_is_kept() -> None:
    x, image, rows = torch.randn(16, 32, 128), torch.randn(8, 16, 20, 20), torch.randn(512, 64)
    for ours, theirs, given, most in (
        (nn.ConvBN1d(32, 32, 3, padding=1), plain_convolution(1, {}, {}), x, 0.55),
        (nn.ConvBN2d(16, 16, 3, padding=1), plain_convolution(2, {}, {}), image, 0.55),
        (nn.LinearBNReLU(64, 64), None, rows, 0.4),
    ):
        parts = list(ours.children())
        theirs = torch.nn.Sequential(*copy.deepcopy(parts), *([torch.nn.ReLU()] if theirs is None else []))
        if hasattr(ours, "padding"):
            theirs[0].padding = (1,) * (given.dim() - 2)
        leaf = given.requires_grad_()
        assert kept(lambda: ours(leaf)) <= most * kept(lambda: theirs(leaf))  # noqa: B023
        weights = sum(p.nbytes for p in ours.parameters())
        assert kept(lambda: ours(leaf)) <= given.nbytes + weights + 4096  # noqa: B023


def test_a_missing_value_gives_no_gradient() -> None:
    x, weight = torch.randn(3, 4, 9), torch.randn(6, 2, 3, requires_grad=True)
    x[1, 0, 4] = torch.nan
    y = ops.conv_bn(x, weight, groups=2).output
    assert y[:, :3].isnan().all()
    assert y[:, 3:].isfinite().all()
    (gradient,) = torch.autograd.grad(y.nan_to_num().square().sum() + y[:, :3].sum(), weight)
    assert gradient[:3].eq(0).all()
    assert gradient[3:].isfinite().all()


def test_compiled_training_moves_the_running_statistics() -> None:
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


def test_the_kernels_are_native_where_a_library_is() -> None:
    if ops.NATIVE:
        for name in ("conv_bn", "linear_bn_relu", "batch_norm_backward"):
            assert "cpu" in opkit.OPERATORS[f"commodity::{name}"].devices
