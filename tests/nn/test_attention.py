"""CrossAssetAttention: the numbers of torch's own layer, missing assets, rows that do not see each other."""

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from torchcommodity import nn


def seeded(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def twins(bias: bool = True) -> tuple[nn.CrossAssetAttention, torch.nn.MultiheadAttention]:
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, dtype=torch.double)
    ours = nn.CrossAssetAttention(8, 2, bias=bias, dtype=torch.double)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("holes", [True, False])
def test_it_has_the_numbers_and_gradients_of_torch(bias: bool, holes: bool) -> None:
    ours, theirs = twins(bias)
    x = seeded(6, 5, 8)
    absent = torch.zeros(6, 5, dtype=torch.bool)
    if holes:
        absent[0, 1] = absent[3, :4] = True
    found = ours(x.masked_fill(absent[..., None], torch.nan))
    expected = theirs(x, x, x, key_padding_mask=absent, need_weights=False)[0].masked_fill(absent[..., None], 0)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    mine = torch.autograd.grad(found.sin().sum(), list(ours.parameters()))
    other = torch.autograd.grad(expected.sin().sum(), list(theirs.parameters()))
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)


def test_a_row_of_missing_assets_is_zero_and_sends_no_gradient() -> None:
    layer, x = twins()[0], seeded(2, 3, 4, 8)
    x[0, 1] = x[1, 2, 0, 3] = torch.nan
    leaf = x.requires_grad_()
    y = layer(leaf)
    assert y.isfinite().all()
    assert y[0, 1].eq(0).all()
    assert y[1, 2, 0].eq(0).all()
    gradients = torch.autograd.grad(y.square().sum(), [leaf, *layer.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][0, 1].eq(0).all()


def test_rows_do_not_see_each_other_and_the_order_of_assets_is_free() -> None:
    layer, x = twins()[0], seeded(2, 7, 4, 8)
    changed = x.clone()
    changed[:, 4:] += 1
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(layer(x[:, :, order]), layer(x)[:, :, order])


@pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn of themselves
def test_compilers_take_it_whole_with_any_batch_and_any_time() -> None:
    torch._dynamo.reset()
    layer = nn.CrossAssetAttention(8, 2)
    x = torch.randn(2, 7, 4, 8)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), strict=True)
    longer = torch.randn(3, 11, 4, 8)
    torch.testing.assert_close(program.module()(longer), layer(longer))


def test_dropout_is_of_training_only_and_what_is_refused() -> None:
    layer, x = nn.CrossAssetAttention(8, 2, dropout=0.5), torch.randn(3, 4, 8)
    assert not layer(x).equal(layer(x))
    assert layer.eval()(x).equal(layer(x))
    with pytest.raises(ValueError, match="embed_dim must be a multiple of num_heads; got embed_dim=8, num_heads=3"):
        nn.CrossAssetAttention(8, 3)
    with pytest.raises(ValueError, match=r"x must be \(\.\.\., N, E\) with E = 8; got x \(3, 4, 7\)"):
        layer(x[..., :7])
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\]"):
        nn.CrossAssetAttention(8, 2, dropout=2)
