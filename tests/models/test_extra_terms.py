"""Extra variance terms: every model takes them, as variances or as multiples of the slow one."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from har_models import two_symbols

from torchcommodity.models import MODELS, HarConfig, ModelInputs, build_model, default_config

HAR = HarConfig(extra_terms=("VIX", "STOCKS"), extra_ratios=("STOCKS",))
PRICES = two_symbols()[:, :300]
EXTRA = torch.full((1, 300, 4, 2, 2), 1e-4, dtype=torch.double)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_extra_variance_terms(name: str) -> None:
    config: Any = default_config(name)
    model = build_model(replace(config, har=HAR), assets=2).eval()
    model.har.mix[:, -3] = 1.0  # of VIX
    with torch.no_grad():
        narrow, wide = (model(PRICES, None, None, x)[..., -1] for x in (EXTRA, 4 * EXTRA))
    assert (wide > narrow).all()
    with pytest.raises(ValueError, match=r"Har: extra_variances must be .* for the extra terms VIX, STOCKS; got none"):
        model(PRICES)


def test_extra_terms_are_variances_or_multiples_of_the_slow_one_and_nan_is_the_slow_one() -> None:
    har = build_model(replace(default_config("har-garch"), har=HAR), assets=2).har
    extra = EXTRA * torch.tensor([1.0, 2e4])
    extra[:, -1, 0, 0] = torch.nan
    terms = har.variance_terms(har.adjust_rolls(ModelInputs(PRICES, extra_variances=extra)))[
        0, -1
    ].detach()  # (H, N, K)
    slow, vix, stocks = terms[..., 3], terms[..., -3], terms[..., -2]
    assert torch.equal(vix[0, 0], slow[0, 0])
    assert torch.equal(stocks[0, 0], slow[0, 0])
    assert (vix.flatten()[1:] == 1e-4).all()
    torch.testing.assert_close(stocks[1:], 2 * slow[1:])


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            EXTRA[..., :1],
            r"\(1, 300, 4, 2, 2\), for the extra terms VIX, STOCKS; got \(1, 300, 4, 2, 1\) of torch.float64",
        ),
        (EXTRA.long(), r"got \(1, 300, 4, 2, 2\) of torch.int64"),
    ],
)
def test_har_names_the_shape_of_extra_variances(extra: torch.Tensor, message: str) -> None:
    model = build_model(replace(default_config("har-garch"), har=HAR), assets=2)
    with pytest.raises(ValueError, match=message):
        model(PRICES, None, None, extra)


def test_model_without_extra_terms_refuses_extra_variances() -> None:
    with pytest.raises(ValueError, match=r"Har: extra_variances must be None: the model has no extra terms; got"):
        build_model(default_config("har-garch"), assets=2)(PRICES, None, None, EXTRA)


def test_config_names_clashing_extra_terms() -> None:
    with pytest.raises(ValueError, match=r"extra_terms must have names of their own"):
        HarConfig(extra_terms=("garch",))
    with pytest.raises(ValueError, match=r"extra_ratios be among them; got \('VIX',\) and \('STOCKS',\)"):
        HarConfig(extra_terms=("VIX",), extra_ratios=("STOCKS",))
