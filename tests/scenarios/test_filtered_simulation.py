"""Dynamic correlation, taken out of residuals and simulated."""

import torch

from torchcommodity.scenarios._filtered_simulation import remove_correlation

RANDOM = torch.Generator().manual_seed(0)


def residuals(rows: int = 1500) -> torch.Tensor:  # (T, 2), correlation 0.8 at first, then -0.2
    noise = torch.randn(rows, 2, dtype=torch.double, generator=RANDOM)
    rho = torch.where(torch.arange(rows) < rows // 2, 0.8, -0.2).double()
    return torch.stack([noise[:, 0], rho * noise[:, 0] + (1 - rho**2).sqrt() * noise[:, 1]], 1)


def test_remove_correlation_leaves_uncorrelated_rows_and_the_latest_correlation() -> None:
    z = residuals()
    z[10, 1] = torch.nan
    shocks, correlation = remove_correlation(z)
    assert shocks.shape == (1499, 2)
    for half in shocks.chunk(2):
        assert torch.corrcoef(half.T)[0, 1].abs() < 0.15
    assert correlation is not None
    simulated, following = correlation.correlate(torch.randn(4000, 2, dtype=torch.double, generator=RANDOM))
    assert abs(torch.corrcoef(simulated.T)[0, 1] + 0.2) < 0.2
    assert following.q.shape == (4000, 2, 2)


def test_remove_correlation_depends_on_earlier_rows_only_for_given_parameters() -> None:
    z = residuals()
    shocks, correlation = remove_correlation(z)
    assert correlation is not None
    # the first row has the correlation of the target
    factor = torch.linalg.cholesky(
        correlation.target / correlation.target.diagonal().outer(correlation.target.diagonal()).sqrt()
    )
    torch.testing.assert_close(factor @ shocks[0], z[0])


def test_one_symbol_and_collinear_symbols_keep_their_rows() -> None:
    z = residuals(300)
    for rows in (z[:, :1], z[:, [0, 0]]):
        shocks, correlation = remove_correlation(rows)
        assert correlation is None
        assert torch.equal(shocks, rows)
