"""Scalers: scikit-learn's numbers, missing prices, state, and export with the network they feed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.export import Dim

from torchcommodity import data
from torchcommodity.nn import MinMaxScaler, RobustScaler, StandardScaler

SCALERS: dict[str, Callable[[], Any]] = {
    "StandardScaler": StandardScaler,
    "MinMaxScaler": MinMaxScaler,
    "MinMaxScaler to -1": lambda: MinMaxScaler((-1, 2)),
    "RobustScaler": RobustScaler,
}
each_scaler = pytest.mark.parametrize("make", SCALERS.values(), ids=list(SCALERS))


@pytest.fixture(scope="module")
def prices() -> Tensor:
    """Prices (T, 3) float64 with missing and negative ones."""
    return data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2018-01-01", "2021-12-31").values.plain()


@each_scaler
def test_scaler_has_the_numbers_of_scikit_learn(make: Callable[[], Any], prices: Tensor) -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    scaler = make()
    settings = {"feature_range": scaler.feature_range} if isinstance(scaler, MinMaxScaler) else {}
    peer = getattr(preprocessing, type(scaler).__name__)(**settings).fit(prices[:700].numpy())
    for x in (prices[:700], prices[700:]):
        expected = peer.transform(x.numpy())
        torch.testing.assert_close(scaler.fit(prices[:700]).transform(x).numpy(), expected, equal_nan=True)
        back = scaler.inverse_transform(torch.from_numpy(expected))
        torch.testing.assert_close(back.numpy(), peer.inverse_transform(expected), equal_nan=True)


@each_scaler
@given(rows=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
@example(rows=[0.0, 0.0, 0.0, 1e6, 1e-307])  # 1e6 divided by the range between the quartiles is infinite
def test_scaler_inverse_transform_undoes_transform(make: Callable[[], Any], rows: list[float]) -> None:
    x = torch.tensor(rows, dtype=torch.double)[:, None]
    scaler = make()
    torch.testing.assert_close(scaler.inverse_transform(scaler.fit_transform(x)), x, rtol=1e-9, atol=1e-9)


@each_scaler
def test_scaler_fits_any_leading_axes(make: Callable[[], Any], prices: Tensor) -> None:
    windows = prices[:600].view(10, 60, 3)
    whole, batched = make().fit(prices[:600]), make().fit(windows)
    assert torch.equal(whole.center, batched.center)
    assert torch.equal(whole.scale, batched.scale)
    assert torch.equal(whole(windows).nan_to_num(), whole(prices[:600]).view(10, 60, 3).nan_to_num())


@each_scaler
def test_scaler_constant_feature_maps_to_one_value(make: Callable[[], Any]) -> None:
    x = torch.tensor([[0.1, 1.0], [0.1, 2.0], [torch.nan, 4.0]], dtype=torch.double).repeat(7, 1)
    scaler = make().fit(x)
    scaled = scaler(x)
    assert scaler.scale[0] == 1
    assert scaled[:2, 0].tolist() == pytest.approx(
        [scaler.feature_range[0] if hasattr(scaler, "feature_range") else 0] * 2
    )
    assert scaled[2, 0].isnan()


@pytest.mark.slow
def test_robust_scaler_fits_more_values_than_nanquantile_takes() -> None:
    x = torch.arange(5.0).expand(3_400_000, 5)
    assert RobustScaler().fit(x).center.tolist() == [0, 1, 2, 3, 4]


def test_standard_scaler_keeps_digits_of_a_large_level(prices: Tensor) -> None:
    small = prices[:, 1:2] * 1e-4
    deviation = np.nanstd(small.numpy())
    assert StandardScaler().fit(small + 1e6).scale.item() == pytest.approx(deviation, rel=1e-6)


def test_standard_scaler_has_the_same_bits_for_any_number_of_threads(prices: Tensor) -> None:
    x, threads = prices.repeat(300, 1)[:, :1], torch.get_num_threads()
    try:
        results = []
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            results.append(StandardScaler().fit(x))
    finally:
        torch.set_num_threads(threads)
    assert len({(scaler.center.item(), scaler.scale.item()) for scaler in results}) == 1


@each_scaler
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_scaler_statistics_and_results_follow_the_dtype(
    make: Callable[[], Any], dtype: torch.dtype, prices: Tensor
) -> None:
    x = prices.to(dtype)
    scaler = make().fit(x)
    assert scaler.center.dtype == scaler.scale.dtype == torch.promote_types(dtype, torch.float32)
    assert scaler(x).dtype == scaler.inverse_transform(x).dtype == dtype
    assert scaler.double()(x).dtype == dtype


def test_scaler_keeps_no_metadata_and_no_graph() -> None:
    values = data.embedded(["WTI"]).values
    scaler = StandardScaler().fit(values.requires_grad_())
    assert type(scaler.center) is type(scaler.scale) is Tensor
    assert not scaler.scale.requires_grad


@each_scaler
def test_scaler_is_differentiable_in_x(make: Callable[[], Any], prices: Tensor) -> None:
    scaler, x = make().fit(prices), prices[:5].nan_to_num(50.0).requires_grad_()
    torch.autograd.gradcheck(scaler, (x,))
    torch.autograd.gradcheck(scaler.inverse_transform, (x,))


@each_scaler
@pytest.mark.parametrize("assign", [False, True])
def test_scaler_state_loads_into_one_that_is_not_fitted(
    make: Callable[[], Any], assign: bool, prices: Tensor, tmp_path: Path
) -> None:
    fitted = nn.Sequential(make().fit(prices), nn.Linear(3, 2, dtype=torch.double))
    torch.save(fitted.state_dict(), tmp_path / "model.pt")
    again = nn.Sequential(make(), nn.Linear(3, 2, dtype=torch.double))
    again.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True), assign=assign)
    x = prices[:50].nan_to_num()
    assert torch.equal(again(x), fitted(x))


def test_scaler_state_of_other_features_is_refused(prices: Tensor) -> None:
    with pytest.raises(RuntimeError, match="size mismatch for center"):
        StandardScaler().fit(prices).load_state_dict(StandardScaler().fit(prices[:, :2]).state_dict())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: StandardScaler()(x), ValueError, r"StandardScaler.transform: the scaler must be fitted first"),
        (
            lambda x: RobustScaler().inverse_transform(x),
            ValueError,
            "RobustScaler.inverse_transform: the scaler must be",
        ),
        (lambda x: StandardScaler().fit(x)(x[:, :1]), ValueError, r"x must be \(..., 3\), .*; got x \(\d+, 1\)"),
        (
            lambda x: StandardScaler().fit(x)(x.long()),
            TypeError,
            "x must be a floating-point Tensor; got x=torch.int64",
        ),
        (lambda x: StandardScaler().fit(x)(x.numpy()), TypeError, "x must be a floating-point Tensor; got x='ndarray'"),
        (lambda x: StandardScaler().fit(x.numpy()), TypeError, "StandardScaler.fit: x must be a Tensor"),
        (lambda x: StandardScaler().fit(x[:, 0]), ValueError, r"StandardScaler.fit: x must be \(..., T, N\)"),
        (lambda x: StandardScaler().fit(x / 0), ValueError, "x must be finite or NaN; got infinite="),
        (lambda x: MinMaxScaler().fit(x * torch.tensor([1, torch.nan, 1])), ValueError, r"features_without=\[1\]"),
        (lambda x: MinMaxScaler().fit(x[:0]), ValueError, r"features_without=\[0, 1, 2\]"),
        (lambda x: MinMaxScaler((1, 1)), ValueError, r"feature_range must be \(a, b\) with a < b.*\(1, 1\)"),
        (lambda x: MinMaxScaler((0, float("inf"))), ValueError, "both finite; got feature_range"),
        (lambda x: RobustScaler().fit(x[:, :0]), ValueError, "x must have at least one feature"),
        (lambda x: MinMaxScaler().fit(torch.tensor([[3e38], [-3e38]])), ValueError, "must be finite in torch.float32"),
    ],
)
def test_scaler_errors_name_argument_and_rule(
    call: Callable[[Tensor], Any], error: type[Exception], message: str, prices: Tensor
) -> None:
    with pytest.raises(error, match=message):
        call(prices)


def test_scaler_repr_says_whether_it_is_fitted(prices: Tensor) -> None:
    assert repr(StandardScaler()) == "StandardScaler(not fitted)"
    assert repr(MinMaxScaler().fit(prices)) == "MinMaxScaler(feature_range=(0, 1), features=3)"


class Forecaster(nn.Module):
    """All scalers, a network and the inverses, as a user combines them."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.scalers = nn.ModuleList(make().fit(x) for make in SCALERS.values())
        self.head = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:  # (B, L, 3) -> (S, B, L, 3)
        forecasts = [scaler.inverse_transform(self.head(scaler(x).nan_to_num())) for scaler in self.scalers]  # type: ignore[operator]
        return torch.stack(forecasts)


@pytest.fixture(scope="module")
def forecaster(prices: Tensor) -> tuple[Forecaster, Tensor, Tensor]:
    """A model, windows (B, L, 3) with missing prices, and its forecasts of them."""
    x = prices[:600].float().view(10, 60, 3)
    model = Forecaster(x).eval()
    return model, x, model(x).detach()


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_scalers_export_with_their_network(forecaster: tuple[Forecaster, Tensor, Tensor]) -> None:
    model, x, expected = forecaster
    program = torch.export.export(model, (x[:4],), dynamic_shapes=({0: Dim("B"), 1: Dim("L")},))
    torch.testing.assert_close(program.module()(x), expected)


@pytest.mark.filterwarnings("ignore")
def test_scalers_compile_without_a_graph_break(forecaster: tuple[Forecaster, Tensor, Tensor]) -> None:
    model, x, expected = forecaster
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(x), expected)


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.filterwarnings("ignore")
def test_scalers_run_in_onnx(forecaster: tuple[Forecaster, Tensor, Tensor], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, x, expected = forecaster
    torch.onnx.export(
        model, (x[:4],), tmp_path / "model.onnx", dynamo=True, dynamic_shapes=({0: Dim("B")},), verbose=False
    )
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (result,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), expected)
