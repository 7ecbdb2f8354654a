"""`TCN`: causal in evaluation mode, receptive field, missing rows."""

import pytest
import torch
from torch.export import Dim

from torchcommodity import nn


def trained(channels: tuple[int, ...] = (6, 6, 4), kernel: int = 3) -> nn.TCN:
    """A network in evaluation mode after a few batches."""
    torch.manual_seed(0)
    layer = nn.TCN(3, channels, kernel)
    for _ in range(3):
        layer(2 * torch.randn(4, 40, 3) + 1)
    return layer.eval()


@pytest.mark.parametrize("row", [1, 17, 39])
def test_tcn_is_causal_in_evaluation(row: int) -> None:
    layer, x = trained(), torch.randn(2, 40, 3)
    changed = x.clone()
    changed[:, row:] = 5 - changed[:, row:]
    changed[:, -1] = torch.nan
    assert torch.equal(layer(x)[:, :row], layer(changed)[:, :row])
    assert not torch.equal(layer(x)[:, row], layer(changed)[:, row])


def test_tcn_in_training_depends_on_later_rows() -> None:
    layer, x = nn.TCN(3, (4,)), torch.randn(2, 40, 3)
    changed = x.clone()
    changed[:, 30:] += 3
    assert not torch.equal(layer(x)[:, :30], layer(changed)[:, :30])


@pytest.mark.parametrize(("channels", "kernel"), [((6,), 2), ((6, 6), 3), ((5, 4, 4), 2)])
def test_tcn_receptive_field(channels: tuple[int, ...], kernel: int) -> None:
    torch.manual_seed(0)
    layer = nn.TCN(3, channels, kernel).double().eval()
    rows = layer.receptive_field
    depends = torch.zeros(rows + 4, dtype=torch.bool)
    for _ in range(20):  # some units are dead for a single input
        x = torch.randn(1, rows + 4, 3, dtype=torch.double, requires_grad=True)
        depends |= torch.autograd.grad(layer(x)[0, -1].sum(), x)[0][0].ne(0).any(-1)
    assert depends.tolist() == [False] * 4 + [True] * rows


def test_tcn_reads_missing_rows_as_zeros() -> None:
    layer, x = trained(), torch.randn(2, 40, 3)
    with_gap = x.clone()
    with_gap[:, 10, 1] = torch.nan
    zeroed = x.clone()
    zeroed[:, 10] = 0
    assert torch.equal(layer(with_gap), layer(zeroed))


def test_tcn_block_equals_torch_layers() -> None:
    """The block written out: padding, torch's convolution and batch norm, relu."""
    layer = trained((4,))
    block, x = layer.blocks[0], torch.randn(2, 12, 3)
    y = x.mT
    for conv in (block.first, block.second):
        padded = torch.nn.functional.pad(y, (2, 0))
        y = torch.relu(conv.norm(torch.nn.functional.conv1d(padded, conv.conv.weight)))
    torch.testing.assert_close(layer(x), torch.relu(block.shortcut(x.mT) + y).mT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_tcn_exports_with_dynamic_batch_and_time() -> None:
    torch._dynamo.reset()
    layer, x = trained(), torch.randn(2, 40, 3)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), strict=True)
    longer = torch.randn(3, 51, 3)
    torch.testing.assert_close(program.module()(longer), layer(longer))


def test_tcn_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match="channels must not be empty"):
        nn.TCN(3, ())
    with pytest.raises(ValueError, match=r"x must be \(B, T, F\) with F = 3; got x \(2, 4, 5\)"):
        nn.TCN(3, (4,))(torch.randn(2, 4, 5))
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\)"):
        nn.TCN(3, (4,), dropout=1.0)
    with pytest.raises(ValueError, match="kernel_size must be >= 1"):
        nn.TCN(3, (4,), 0)
