"""`CrossAssetAttention` against `torch.nn.MultiheadAttention`, with missing assets, and row by row."""

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


def test_cross_asset_attention_is_row_wise_and_permutation_equivariant() -> None:
    layer, x = make_pair()[0], random(2, 7, 4, 8)
    changed = x.clone()
    changed[:, 4:] += 1
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(layer(x[:, :, order]), layer(x)[:, :, order])


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
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\]"):
        nn.CrossAssetAttention(8, 2, dropout=2)
