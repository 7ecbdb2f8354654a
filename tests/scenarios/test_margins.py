"""The monotone map from simulated paths to the quantiles of a forecast, and the bootstrap of rows."""

import itertools

import torch

from torchcommodity.scenarios._bootstrap import resampled_rows
from torchcommodity.scenarios._margins import match_margins, path_quantiles

HORIZONS, LEVELS = (4, 16), (0.05, 0.25, 0.5, 0.75, 0.95)


def walks(paths: int = 400) -> torch.Tensor:  # (N, T, P)
    return torch.randn(2, 16, paths, dtype=torch.double, generator=torch.Generator().manual_seed(0)).cumsum(1)


def skewed_quantiles() -> torch.Tensor:  # (H, N, Q)
    z = torch.special.ndtri(torch.tensor(LEVELS, dtype=torch.double)).add(0.2).exp()
    return torch.stack([torch.stack([z, 2 * z]), torch.stack([3 * z, 5 * z])])


def test_match_margins_gives_the_quantiles_at_the_horizons_and_keeps_the_ranks() -> None:
    paths, quantiles = walks(), skewed_quantiles()
    mapped = match_margins(paths, quantiles, HORIZONS, LEVELS)
    for h, expected in zip(HORIZONS, quantiles):
        got = path_quantiles(mapped[:, h - 1], torch.tensor(LEVELS, dtype=torch.double))
        torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)
    assert torch.equal(mapped.argsort(-1), paths.argsort(-1))


def test_match_margins_of_the_paths_own_quantiles_changes_nothing() -> None:
    paths = walks()
    own = torch.stack([path_quantiles(paths[:, h - 1], torch.tensor(LEVELS, dtype=torch.double)) for h in HORIZONS])
    torch.testing.assert_close(match_margins(paths, own, HORIZONS, LEVELS), paths)


def test_match_margins_of_one_level_shifts_the_paths() -> None:
    paths = walks()
    median = path_quantiles(paths[:, 3], torch.tensor([0.5], dtype=torch.double))
    mapped = match_margins(paths[:, :4], median[None] + 1, (4,), (0.5,))
    torch.testing.assert_close(mapped[:, 3], paths[:, 3] + 1)


def test_match_margins_uses_each_row_of_a_path_alone() -> None:
    paths, quantiles = walks(), skewed_quantiles()
    # the same values in another order at later rows: earlier rows of a path stay
    shuffled = torch.cat([paths[:, :8], paths[:, 8:].flip(-1)], 1)
    mapped = match_margins(paths, quantiles, HORIZONS, LEVELS)
    other = match_margins(shuffled, quantiles, HORIZONS, LEVELS)
    torch.testing.assert_close(mapped[:, :8], other[:, :8])


def test_path_quantiles_are_those_of_torch() -> None:
    levels = torch.tensor([0.0, 0.05, 0.31, 1.0], dtype=torch.double)
    torch.testing.assert_close(path_quantiles(walks(), levels), walks().quantile(levels, dim=-1).movedim(0, -1))


def test_resampled_rows_have_blocks_of_the_mean_length() -> None:
    random = torch.Generator().manual_seed(0)
    rows = torch.stack(list(itertools.islice(resampled_rows(500, 2000, 8.0, random), 60)))
    continued = (rows[1:] == (rows[:-1] + 1) % 500).double().mean().item()
    assert abs(continued - (1 - 1 / 8)) < 0.01
    assert rows.min() == 0
    assert rows.max() == 499
    assert abs(rows.double().mean() / 249.5 - 1) < 0.02
