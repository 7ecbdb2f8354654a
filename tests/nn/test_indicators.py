"""`Indicators` against pandas."""

import pandas as pd
import pytest
import torch
from learned_layers import three_symbols

from torchcommodity import nn


def ewm(x: pd.Series, alpha: float) -> pd.Series:
    return x.ewm(alpha=alpha, adjust=False).mean()


def test_indicators_equal_pandas() -> None:
    close = three_symbols()[:150, 1]
    result = nn.Indicators(dtype=torch.double)(close.unsqueeze(-1)).squeeze(1)[close.isfinite()].detach().numpy()
    series = pd.Series(close[close.isfinite()].numpy())
    change = series.diff()
    gain, loss = (ewm(x, 1 / 14) for x in (change.clip(lower=0)[1:], (-change).clip(lower=0)[1:]))
    logs = series.map(lambda p: torch.tensor(p).double().log().item())
    macd = ewm(logs, 2 / 13) - ewm(logs, 2 / 27)
    assert result[-1, 0] == pytest.approx((100 * gain / (gain + loss)).iloc[-1], rel=1e-9)
    assert result[-1, 1] == pytest.approx(macd.iloc[-1], abs=1e-8)  # of logs near 5
    assert result[-1, 2] == pytest.approx((macd - ewm(macd[25:], 2 / 10)).iloc[-1], abs=1e-8)


def test_indicators_reject_a_period_of_one() -> None:
    with pytest.raises(ValueError, match="Indicators: fast must be >= 2; got fast=1"):
        nn.Indicators(fast=1)


@pytest.mark.parametrize("assets", [1, 2])
def test_indicators_reject_prices_of_other_assets(assets: int) -> None:
    with pytest.raises(ValueError, match=rf"^Indicators: prices must be .* N = 3, .*; got prices \(10, {assets}\)$"):
        nn.Indicators(assets=3)(torch.ones(10, assets))
