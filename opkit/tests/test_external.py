"""`opkit.external`: models outside PyTorch as operators."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import torch_opkit as opkit


def product(x: Any, y: Any) -> Any:
    return np.sin(x) * y


def product_backward(grad: Any, x: Any, y: Any) -> Any:
    return grad * np.cos(x) * y, grad * np.sin(x)


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(3, 4, dtype=torch.double, generator=generator, requires_grad=True) for _ in range(2))
    return x, y


@functools.cache
def product_operator(gradient: Any) -> Callable[..., Tensor]:
    settings = {"backward": product_backward} if gradient == "custom" else {}
    return opkit.external(product, name=f"tests::product_{gradient[0]}", inputs=2, gradient=gradient, **settings)


@pytest.mark.parametrize("gradient", ["custom", "finite-difference"])
def test_external_gradient_passes_gradcheck(pair: tuple[Tensor, Tensor], gradient: Any) -> None:
    operator = product_operator(gradient)
    assert torch.equal(operator(*pair), pair[0].sin() * pair[1])
    assert torch.autograd.gradcheck(operator, pair)
    stacked = torch.stack([pair[0], 2 * pair[0]]).detach()
    assert torch.equal(torch.vmap(operator, (0, None))(stacked, pair[1].detach())[1], operator(stacked[1], pair[1]))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from Inductor
@pytest.mark.parametrize("gradient", ["custom", "finite-difference"])
def test_external_compiles_fullgraph(pair: tuple[Tensor, Tensor], gradient: Any) -> None:
    operator = product_operator(gradient)
    compiled = torch.compile(lambda x, y: operator(x, y).square().sum(), fullgraph=True)
    expected = torch.autograd.grad(operator(*pair).square().sum(), pair)
    torch.testing.assert_close(torch.autograd.grad(compiled(*pair), pair), expected)


def test_external_without_gradient_raises(pair: tuple[Tensor, Tensor]) -> None:
    operator = opkit.external(np.sin, name="tests::no_gradient")
    with pytest.raises(RuntimeError, match="tests::no_gradient: the model has no gradient"):
        operator(pair[0]).sum().backward()
    assert torch.equal(operator(pair[0].detach()), pair[0].detach().sin())
    once = opkit.external(np.sin, name="tests::once", gradient="custom", backward=lambda g, x: g * np.cos(x))
    (first,) = torch.autograd.grad(once(pair[0]).sum(), pair[0], create_graph=True)
    with pytest.raises(RuntimeError, match=r"once: the Op declares once_differentiable=True.* a second derivative"):
        first.sum().backward()


def test_external_refuses_in_the_check_what_numpy_cannot_differentiate(pair: tuple[Tensor, Tensor]) -> None:
    report = opkit.check(product_operator("custom"), samples=[pair], compiled=False)
    assert report.ok, report
    assert report["gradgradcheck"].status == report["forward_mode"].status == "skip"


@pytest.mark.slow
@pytest.mark.compile
def test_check_calls_a_record_without_cases_in_one_graph(pair: tuple[Tensor, Tensor]) -> None:
    report = opkit.check(product_operator("finite-difference"), samples=[pair], only="compile_forward")
    assert report.ok, report


def test_external_straight_through_has_the_gradient_of_the_identity(pair: tuple[Tensor, Tensor]) -> None:
    operator = opkit.external(np.round, name="tests::rounded", gradient="straight-through")
    (g,) = torch.autograd.grad((2 * operator(pair[0])).sum(), pair[0])
    assert torch.equal(g, torch.full_like(g, 2))


def test_external_wraps_a_regressor(pair: tuple[Tensor, Tensor]) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(0)
    x = generator.normal(size=(50, 4))
    model = linear_model.Ridge().fit(x, x @ [1.0, -2.0, 0.5, 0.0])
    operator = opkit.external(model, name="tests::ridge", gradient="finite-difference")
    assert operator(pair[0]).shape == (3,)
    np.testing.assert_allclose(operator(pair[0]).detach().numpy(), model.predict(pair[0].detach().numpy()))
    (g,) = torch.autograd.grad(operator(pair[0]).sum(), pair[0])
    np.testing.assert_allclose(g.numpy(), np.tile(model.coef_, (3, 1)), atol=1e-8)
    deep = torch.stack([pair[0], -pair[0]]).detach()
    assert operator(deep).shape == (2, 3)
    assert torch.equal(torch.vmap(operator)(deep), operator(deep))


@pytest.mark.filterwarnings("ignore")  # from the exporter
def test_external_wraps_an_onnx_session(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double().eval(), torch.randn(3, 4).double()
    program = torch.onnx.export(model, (x,), dynamo=True, verbose=False, dynamic_shapes=({0: torch.export.Dim("B")},))
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    operator = opkit.external(
        session, name="tests::session", gradient="finite-difference", batched=True,
        fake=lambda x: x.new_empty(*x.shape[:-1], 2),
    )  # fmt: skip
    torch.testing.assert_close(operator(x), model(x).detach())
    leaf = x.clone().requires_grad_()
    expected = torch.autograd.grad(model(leaf).sin().sum(), leaf)
    torch.testing.assert_close(torch.autograd.grad(operator(leaf).sin().sum(), leaf), expected, atol=1e-6, rtol=1e-6)


def test_external_rejects_a_result_of_another_shape(pair: tuple[Tensor, Tensor]) -> None:
    operator = opkit.external(lambda x: x.sum(-1), name="tests::summed")
    with pytest.raises(RuntimeError, match=r"tests::summed: the model must return shape \(3, 4\); got \(3,\)"):
        operator(pair[0].detach())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gradient": "custom"}, "backward must go together; got 'custom', no backward"),
        ({"backward": product_backward}, "backward must go together; got 'none', backward"),
        ({"gradient": "guessed"}, "gradient must be one of none, custom"),
    ],
)
def test_external_rejects_contradictory_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        opkit.external(np.sin, name="tests::never", **settings)
    with pytest.raises(TypeError, match="model must be callable"):
        opkit.external(3, name="tests::never")
