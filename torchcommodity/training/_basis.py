"""Fit in closed form how much faster or slower than expected the basis of a spot price returns to its mean."""

import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity.models import Basis, ModelInputs

BASIS_PRIOR = 6.0  # F at which half of the fitted reversion is expected


def fit_basis(basis: Basis, inputs: ModelInputs, target: Tensor, variance: Tensor, expected: Tensor) -> Tensor:
    """Fit in place on all rows of `inputs`, for each symbol with a curve by itself.

    Of what the slope of the curve and the expected reversion leave of an outcome, y = (outcome - m_h) / sigma_h, the
    regression on z = D / sigma_h over the rows on which the curve is known has the coefficient b = sum zy / sum z^2 and
    the evidence F = b^2 sum z^2 / (h Var(y - bz)); b F / (F + 6) is the coefficient of the model.

    Args:
        basis: the module; its coefficients are overwritten.
        inputs: training rows only.
        target: (T, H, N) outcomes less the expected effect of rolls and averaging; NaN is ignored.
        variance: (T, N) slow variance per row; NaN during warm-up.
        expected: (T, H, N) of related prices and the season.

    Returns:
        `expected`, with what the curves say in place of it where they are known, as `Basis.forward`; (T, H, N).
    """
    prices, _, curve, _, _, days, *_ = inputs.unsqueeze()
    if curve is None or days is None:
        basis.coefficients.zero_()
        basis.rows.zero_()
        return expected
    state = basis.state(prices, curve, days, Past(), len(expected))
    for m, n in enumerate(basis.columns.tolist()):
        rows = []
        for i, h in enumerate(basis.horizons):
            sigma = (h * variance[:, n]).sqrt()
            y = (target[:, i, n] - state.expected[0, :, i, m]) / sigma
            valid = state.known[0, :, m] & y.isfinite()
            y, z = y[valid], (state.deviation[0, :, m] / sigma)[valid]
            squares = z.square().sum()
            b = (z * y).sum() / squares
            f = b.square() * squares / (h * (y - b * z).var(correction=0))
            basis.coefficients[i, m] = torch.where(f.isfinite(), b * f / (f + BASIS_PRIOR), 0.0)
            rows.append(len(y))
        basis.rows[m] = max(rows)
    return basis.replace_known(expected[None], state)[0]
