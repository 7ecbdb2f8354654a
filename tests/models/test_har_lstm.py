"""`HarLstm` at its default settings, and with few rows and features."""

import pytest
import torch
from har_models import ROWS, all_rows, baseline, equal_with_nan, two_symbols, with_random_head
from torch import Tensor

from torchcommodity.models import HarLstm, HarLstmConfig


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (1, T, 2)
    return two_symbols()


def test_har_lstm_untrained_equals_har(prices: Tensor) -> None:
    model = HarLstm(2)
    assert equal_with_nan(all_rows(model, prices), baseline(model, prices))
    assert not equal_with_nan(all_rows(with_random_head(), prices), baseline(model, prices))


def test_har_lstm_forward_is_the_last_of_all_rows(prices: Tensor) -> None:
    model = with_random_head()
    rows = all_rows(model, prices)
    assert rows.shape == (1, ROWS, 4, 2, 19)
    assert torch.equal(model(prices), rows[:, -1])
    torch.testing.assert_close(model(prices[:, :500]), rows[:, 499], rtol=1e-5, atol=0)  # float32 network


@pytest.mark.parametrize("row", [1, 260, 400, 698])
def test_har_lstm_is_causal(prices: Tensor, row: int) -> None:
    model, changed = with_random_head(), prices.clone()
    changed[:, row:] = changed[:, row:] * 2 + 1
    changed[:, -1] = torch.nan
    before, after = all_rows(model, prices), all_rows(model, changed)
    assert equal_with_nan(before[:, :row], after[:, :row])
    assert row == 1 or not equal_with_nan(before[:, row:], after[:, row:])


@pytest.mark.slow
@pytest.mark.export
def test_har_lstm_exports_with_dynamic_batch_and_time(prices: Tensor) -> None:
    model, two = with_random_head(warmup=5), prices[:, 300:340].repeat(2, 1, 1)
    sizes = {0: torch.export.Dim("B", min=1, max=64), 1: torch.export.Dim("T", min=8, max=4096)}
    exported = torch.export.export(model, (two,), dynamic_shapes=(sizes,))
    five = prices[:, 300:400].repeat(5, 1, 1)
    torch.testing.assert_close(exported.module()(five), model(five))


def test_har_lstm_of_few_rows_and_features_agrees_at_every_row(prices: Tensor) -> None:
    model = HarLstm(2, HarLstmConfig(features=(0, 3), rows=5))
    torch.nn.init.normal_(model.head.weight)
    torch.testing.assert_close(model.eval()(prices), all_rows(model, prices)[:, -1], rtol=1e-6, atol=1e-9)


def test_har_lstm_config_rejects_features() -> None:
    with pytest.raises(ValueError, match=r"features must be increasing indices in 0\.\.8; got \(3, 0\)"):
        HarLstmConfig(features=(3, 0))
