"""Stationary bootstrap of rows, and of joint returns, the baseline of the generator."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from torchcommodity._extras import extra
from torchcommodity.data import SyntheticTensor
from torchcommodity.scenarios._scenarios import Scenarios


def stationary_bootstrap(
    returns: Tensor,  # (R, N)
    symbols: tuple[str, ...],
    paths: int,
    rows: int,
    *,
    seed: int = 0,
    block: float | None = None,
) -> Scenarios:
    """Resample rows of joint returns in blocks of geometric length.

    Args:
        returns: R rows of real log-returns, all finite.
        symbols: N names.
        paths: number of paths.
        rows: rows per path, at most R.
        seed: random seed.
        block: mean block length in rows; by default the optimal length for r^2, averaged over the assets.

    Raises:
        ValueError: `paths` is not positive, `rows` is not in [1, R], `block` is below 1, or a return is not finite.

    References:
        Politis, Romano (1994). The stationary bootstrap. JASA 89. doi:10.1080/01621459.1994.10476870.
        Patton, Politis, White (2009). Correction to "Automatic block-length selection for the dependent bootstrap".
        Econometric Reviews 28(4). doi:10.1080/07474930802459016.

    Example:
        >>> from torchcommodity import data, ops
        >>> returns = ops.log_returns(data.embedded(["BRENT"]).values.plain())[1:]
        >>> stationary_bootstrap(returns[returns.isfinite().all(1)], ("BRENT",), 3, 20, block=10.0)
        Scenarios(3 paths of 20 rows; synthetic:BRENT; stationary bootstrap of 9957 rows, mean block 10.0, seed 0)
    """
    with extra("forecast"):
        from arch.bootstrap import StationaryBootstrap, optimal_block_length

    past = returns.double().numpy()
    if not 1 <= rows <= len(past) or paths < 1:
        rule = f"paths must be >= 1 and rows in [1, {len(past)}], the number of returns"
        raise ValueError(f"stationary_bootstrap: {rule}; got paths={paths}, rows={rows}")
    if not np.isfinite(past).all():
        raise ValueError("stationary_bootstrap: returns must be finite; got NaN or infinity; leave out such rows")
    if block is not None and not block >= 1:
        raise ValueError(f"stationary_bootstrap: block must be >= 1 row; got block={block}")
    mean_block = float(optimal_block_length(past**2)["stationary"].mean()) if block is None else block
    paths_per_sample = len(past) // rows
    bootstrap = StationaryBootstrap(mean_block, past, seed=seed)  # type: ignore[arg-type]
    samples = [sample for (sample,), _ in bootstrap.bootstrap(-(-paths // paths_per_sample))]
    pieces = [x[: paths_per_sample * rows].reshape(paths_per_sample, rows, -1) for x in samples]
    origin = f"stationary bootstrap of {len(past)} rows, mean block {mean_block:.1f}, seed {seed}"
    return Scenarios(SyntheticTensor(torch.from_numpy(np.concatenate(pieces)[:paths])), symbols, origin)


def resampled_rows(count: int, paths: int, block: float, random: torch.Generator) -> Iterator[Tensor]:  # each (P,)
    """Row numbers of every path, one step after the other: the next row, or, with probability 1 / block, any row.

    The last row is followed by the first one. The steps of a short simulation are the first ones of a long one.

    References:
        Politis, Romano (1994). The stationary bootstrap. JASA 89. doi:10.1080/01621459.1994.10476870.
    """
    rows = torch.randint(count, (paths,), generator=random)
    while True:
        yield rows
        starts = torch.rand(paths, generator=random) < 1 / block
        rows = torch.where(starts, torch.randint(count, (paths,), generator=random), (rows + 1) % count)
