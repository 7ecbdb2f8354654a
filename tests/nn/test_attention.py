"""`CrossAssetAttention` against `torch.nn.MultiheadAttention`, with missing assets, and row by row."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from torchcommodity import nn


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def make_pair(bias: bool = True) -> tuple[nn.CrossAssetAttention, torch.nn.MultiheadAttention]:
    torch.manual_seed(0)
    reference = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, dtype=torch.double)
    layer = nn.CrossAssetAttention(8, 2, bias=bias, dtype=torch.double)
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    layer.load_state_dict(reference.state_dict())
    return layer, reference


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gaps", [True, False])
def test_cross_asset_attention_equals_torch(bias: bool, gaps: bool) -> None:
    layer, reference = make_pair(bias)
    x = random(6, 5, 8)
    missing = torch.zeros(6, 5, dtype=torch.bool)
    if gaps:
        missing[0, 1] = missing[3, :4] = True
    output = layer(x.masked_fill(missing[..., None], torch.nan))
    expected = reference(x, x, x, key_padding_mask=missing, need_weights=False)[0].masked_fill(missing[..., None], 0)
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-12)
    gradients = torch.autograd.grad(output.sin().sum(), list(layer.parameters()))
    expected_gradients = torch.autograd.grad(expected.sin().sum(), list(reference.parameters()))
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-9, atol=1e-11)


def test_cross_asset_attention_of_missing_assets_is_zero_without_gradient() -> None:
    layer, x = make_pair()[0], random(2, 3, 4, 8)
    x[0, 1] = x[1, 2, 0, 3] = torch.nan
    leaf = x.requires_grad_()
    y = layer(leaf)
    assert y.isfinite().all()
    assert y[0, 1].eq(0).all()
    assert y[1, 2, 0].eq(0).all()
    gradients = torch.autograd.grad(y.square().sum(), [leaf, *layer.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][0, 1].eq(0).all()


MASKS = {
    "pairs": random(5, 5) > 0,
    "heads": random(2, 5, 5) > 0,
    "rows": random(3, 1, 1, 5, 5) > 0,
    "scores": random(5, 5),
    "scores of heads with excluded pairs": random(2, 5, 5).masked_fill(random(2, 5, 5) > 0.5, -torch.inf),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_cross_asset_attention_mask_equals_torch_with_the_inverted_mask(mask: Tensor) -> None:
    layer, reference = make_pair()
    excludes = mask.dtype == torch.bool
    mask = (mask | torch.eye(5, dtype=torch.bool)) if excludes else mask.clone()
    x = random(3, 4, 5, 8)
    full = mask.expand(3, 4, 2, 5, 5).flatten(0, 2)  # torch's layer takes (batch * heads, N, N)
    rows = x.flatten(0, 1)
    expected = reference(rows, rows, rows, attn_mask=~full if excludes else full, need_weights=False)[0]
    torch.testing.assert_close(layer(x, mask), expected.view_as(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["bool", "scores"])
def test_cross_asset_attention_to_no_asset_is_zero_without_nan_gradients(kind: str) -> None:
    layer, x = make_pair()[0], random(3, 4, 8)
    x[0, 1] = torch.nan
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[:, 3] = mask[0, 2] = False  # asset 3 attends to none; asset 2 to none in head 0
    mask[:, 0, [0, 2, 3]] = False  # asset 0 attends to asset 1 only, which is missing in the first row
    scores = torch.zeros(2, 4, 4, dtype=torch.double).masked_fill(~mask, -torch.inf).requires_grad_()
    leaf = x.requires_grad_()
    y = layer(leaf, mask if kind == "bool" else scores)
    assert y[:, 3].eq(0).all()
    assert y[0, 0].eq(0).all()
    assert y[1, 0].ne(0).all()
    assert y[:, 2].ne(0).all()
    torch.testing.assert_close(y, layer(leaf, scores if kind == "bool" else mask))
    inputs = [leaf, *layer.parameters(), *([] if kind == "bool" else [scores])]
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(y.square().sum(), inputs))


def test_cross_asset_attention_rejects_a_mask_that_does_not_fit() -> None:
    layer, x = nn.CrossAssetAttention(8, 2), torch.randn(3, 4, 8)
    with pytest.raises(
        ValueError, match=r"must broadcast to \(\.\.\., heads, N, N\) = \(3, 2, 4, 4\); got mask \(3, 4, 4\)"
    ):
        layer(x, torch.ones(3, 4, 4, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"mask must be bool, True where asset i attends to asset j, or floating-point"):
        layer(x, torch.ones(4, 4, dtype=torch.long))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
@pytest.mark.parametrize("dtype", [torch.bool, torch.float])
def test_cross_asset_attention_with_a_mask_compiles_and_exports(dtype: torch.dtype, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    torch._dynamo.reset()
    layer, x = nn.CrossAssetAttention(8, 2).eval(), torch.randn(2, 7, 4, 8)
    x[0, 3, 1] = torch.nan
    mask = (torch.rand(2, 4, 4) > 0.4).to(dtype)
    mask[:, 2] = 0 if dtype == torch.bool else -torch.inf
    expected = layer(x, mask)
    backend = "inductor" if dtype == torch.bool else "aot_eager"  # Inductor has misread masks before
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend=backend)(x, mask), expected)
    shapes = {"x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, "mask": None}
    program = torch.export.export(layer, (x, mask), dynamic_shapes=shapes, strict=True)
    longer = torch.randn(3, 11, 4, 8)
    torch.testing.assert_close(program.module()(longer, mask), layer(longer, mask))
    torch.onnx.export(program, (), tmp_path / "attention.onnx", dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "attention.onnx")
    (result,) = session.run(None, {"x": x.numpy(), "mask": mask.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), expected)


def test_cross_asset_attention_is_row_wise_and_permutation_equivariant() -> None:
    layer, x = make_pair()[0], random(2, 7, 4, 8)
    changed = x.clone()
    changed[:, 4:] += 1
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(layer(x[:, :, order]), layer(x)[:, :, order])


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_cross_asset_attention_exports_with_dynamic_batch_and_time() -> None:
    torch._dynamo.reset()
    layer = nn.CrossAssetAttention(8, 2)
    x = torch.randn(2, 7, 4, 8)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), strict=True)
    longer = torch.randn(3, 11, 4, 8)
    torch.testing.assert_close(program.module()(longer), layer(longer))


def test_cross_asset_attention_drops_in_training_only() -> None:
    layer, x = nn.CrossAssetAttention(8, 2, dropout=0.5), torch.randn(3, 4, 8)
    assert not layer(x).equal(layer(x))
    assert layer.eval()(x).equal(layer(x))


def test_cross_asset_attention_rejects_bad_input() -> None:
    layer, x = nn.CrossAssetAttention(8, 2), torch.randn(3, 4, 8)
    with pytest.raises(ValueError, match="embed_dim must be a multiple of num_heads; got embed_dim=8, num_heads=3"):
        nn.CrossAssetAttention(8, 3)
    with pytest.raises(ValueError, match=r"x must be \(\.\.\., N, E\) with E = 8; got x \(3, 4, 7\)"):
        layer(x[..., :7])
    with pytest.raises(
        TypeError, match=r"x must be torch.float32, as the weights; got dtype=torch.float64 with x \(3, "
    ):
        layer(x.double())
    with pytest.raises(TypeError, match="CrossAssetAttention: x must be a Tensor; got x='ndarray'"):
        layer(x.numpy())
    with torch.autocast("cpu"):
        assert layer(x.bfloat16()).dtype == torch.bfloat16
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\]"):
        nn.CrossAssetAttention(8, 2, dropout=2)
