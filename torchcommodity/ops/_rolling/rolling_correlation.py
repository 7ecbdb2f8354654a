"""Rolling Pearson correlation of every pair of assets."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, live
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling import rolling_correlation_backward
from torchcommodity.ops._rolling.pairs import pack_pairs
from torchcommodity.ops._rolling.window import last_rows, resolve_min_periods, sliding_windows


def _update(past: Past, returns: Tensor, window: int, min_periods: int | None, packed: bool) -> Tensor:
    check_integer("rolling_correlation", 2, window=window)
    if past.get("returns") is not None:
        rows = past.with_rows("returns", returns, window)
    else:  # a window of missing rows first, as no panel may be shorter than the window
        rows = past.with_rows("returns", pad(returns, (0, 0, window, 0), value=torch.nan), window)
    y = rolling_correlation(rows, window, min_periods=min_periods, packed=packed)
    return last_rows(y, returns.shape[-2], -2 if packed else -3)


@live(_update, outputs=lambda packed, **_: -2 if packed else -3)
def rolling_correlation(
    returns: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    packed: bool = False,
) -> Tensor:  # (..., T, N, N), or (..., T, N (N - 1) / 2) if packed
    """Rolling Pearson correlation of every pair, as pandas `DataFrame.rolling(window, min_periods).corr()`.

    r_ij = c_ij / sqrt(c_ii c_jj), where c_ij is the sum of products about the means, over the rows of the window in
    which both values are valid.

    Args:
        returns: Log-returns per step, or values in any unit. NaN and infinite values count as missing.
        window: Window length in rows, in [2, T].
        min_periods: Minimum number of rows in which both values of a pair are valid, in [1, window]. Default: `window`.
        packed: Return each pair i < j once, in the order of `torch.triu_indices(N, N, offset=1)`: the upper triangle
            row by row. `correlation_matrix` turns pairs into matrices.

    Returns:
        Symmetric matrices with entries in [-1, 1] and an exact 1 on the diagonal; dimensionless. NaN where a pair has
        fewer than `min_periods` (at least two) common rows or one of its values is constant on them. Causal; the first
        `min_periods - 1` rows are NaN.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel or `window` or `min_periods` is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode.

    References:
        Pearson (1895). Notes on regression and inheritance in the case of two parents. doi:10.1098/rspl.1895.0041.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[0.01, -0.02], [0.02, -0.04], [0.00, 0.00], [0.03, -0.01]])
        >>> ops.rolling_correlation(returns, window=3)[:, 0, 1]
        tensor([    nan,     nan, -1.0000, -0.4193])
        >>> ops.rolling_correlation(returns, window=3, packed=True).shape
        torch.Size([4, 1])
    """
    op = pairs_operator if packed else operator
    check_panel(op.name, returns=returns)
    min_periods = resolve_min_periods(window, min_periods)
    check_integer(op.name, 1, window=window, min_periods=min_periods)
    if not 2 <= window <= returns.shape[-2]:
        raise_invalid(op.name, "window must be in [2, T]", window=window, returns=returns)
    if min_periods > window:
        raise_invalid(op.name, "min_periods must be in [1, window]", min_periods=min_periods, window=window)
    y: Tensor = op(returns, window, min_periods)
    return y


def _reference(returns: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    rows, min_periods = range(returns.shape[-2]), resolve_min_periods(window, min_periods)
    matrices = [_matrix(returns[..., max(t - window + 1, 0) : t + 1, :], min_periods) for t in rows]
    return torch.stack(matrices, -3) if matrices else _fake(returns)


def _matrix(x: Tensor, min_periods: int) -> Tensor:  # (..., W, N) -> (..., N, N)
    """Correlations of the columns of one window."""
    common = x.isfinite().unsqueeze(-1) & x.isfinite().unsqueeze(-2)  # (..., W, N, N): both i and j are valid
    count = common.sum(-3).clamp(min=1)
    x = x.unsqueeze(-1).expand(common.shape)
    low, high = x.where(common, torch.inf).amin(-3), x.where(common, -torch.inf).amax(-3)
    mean = (x - low.unsqueeze(-3)).where(common, 0).sum(-3) / count
    centered = (x - low.unsqueeze(-3) - mean.unsqueeze(-3)).where(common, 0)
    scale = centered.square().sum(-3).sqrt()
    r = ((centered / scale.unsqueeze(-3)) * (centered / scale.unsqueeze(-3)).mT).sum(-3).clamp(-1, 1)
    r = r.masked_fill(torch.eye(r.shape[-1], dtype=torch.bool, device=r.device), 1)
    defined = (low < high) & (common.sum(-3) >= min_periods)
    return r.where(defined & defined.mT, torch.nan)


def _decomposition(returns: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    return _matrix(sliding_windows(returns, window).mT, resolve_min_periods(window, min_periods))


def _pairs_reference(returns: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    return pack_pairs(_reference(returns, window, min_periods))


def _pairs_decomposition(returns: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    return pack_pairs(_decomposition(returns, window, min_periods))


def _fake(returns: Tensor) -> Tensor:
    return returns.new_empty(*returns.shape, returns.shape[-1])


def _pairs_fake(returns: Tensor) -> Tensor:
    assets = returns.shape[-1]
    return returns.new_empty(*returns.shape[:-1], assets * (assets - 1) // 2)


def _backward(grad: Tensor, *, returns: Tensor, window: int, output: Tensor) -> Tensor:
    dx: Tensor = rolling_correlation_backward.operator(returns, grad, output, window)
    return dx


def _oracle(returns: Tensor, window: int, *, min_periods: int | None = None, packed: bool = False) -> Tensor:
    import pandas as pd

    panels = [
        torch.as_tensor(pd.DataFrame(panel.numpy()).rolling(window, min_periods).corr().to_numpy())
        for panel in returns.reshape(-1, *returns.shape[-2:])
    ]
    matrices = torch.stack(panels).reshape(*returns.shape, -1)
    matrices = matrices.masked_fill(matrices.isinf(), torch.nan)  # pandas 2, where a variance is zero
    return pack_pairs(matrices) if packed else matrices


def _cases(packed: bool = False) -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3, 1] = x_nan[1, 6, 0] = x_nan[1, 2, 2] = torch.nan
    x_nan[0, 7, 2] = torch.inf
    constant = x.clone()
    constant[0, 2:7, 1] = 0.1
    long = torch.randn(400, 5, dtype=torch.double, generator=generator)
    long[torch.rand(400, 5, generator=generator) < 0.2] = torch.nan
    ramp = torch.tensor([[1.0, 4.0], [2.0, 3.0], [3.0, 1.0], [4.0, 2.0]], dtype=torch.double)
    golden = torch.full((4, 2, 2), torch.nan, dtype=torch.double)
    golden[3] = torch.tensor([[1.0, -0.8], [-0.8, 1.0]], dtype=torch.double)
    golden = pack_pairs(golden) if packed else golden
    spearman = "Spearman's rank example: 1 - 6 sum d^2 / (n (n^2 - 1))"
    single = () if packed else (Sample(x[0, :, :1], window=2),)

    def sample(returns: Tensor, **settings: Any) -> Sample:
        return Sample(returns, **settings, packed=packed)

    return Cases(
        function=rolling_correlation,
        samples=(
            sample(x, window=4),
            sample(x_nan, window=4, min_periods=3),
            sample(x_nan, window=9, min_periods=2),
            *single,
        ),
        bad=(
            Bad(
                sample(torch.zeros(3, 40, 5), window=60),
                r"rolling_correlation(_pairs)?: window must be in \[2, T\]; got window=60 with returns \(3, 40, 5\)",
            ),
            Bad(sample(x, window=1), r"window must be in \[2, T\]; got window=1 with returns"),
            Bad(
                sample(x, window=4, min_periods=5), r"min_periods must be in \[1, window\]; got min_periods=5, window=4"
            ),
            Bad(sample(x, window=4, min_periods=0), "min_periods must be >= 1; got min_periods=0"),
            Bad(sample(x[0, 0], window=4), r"returns must be \(\.\.\., T, N\)"),
            Bad(sample(x.long(), window=4), "returns must be floating-point", TypeError),
            Bad(sample(x, window=4.0), "window must be an int", TypeError),
        ),
        golden=(Golden(sample(ramp, window=4), golden, spearman),),
        oracle=_oracle,
        oracle_samples=(
            sample(constant, window=4, min_periods=3),
            sample(long, window=30, min_periods=12),
            sample(long.nan_to_num(0.3), window=60),
        ),
    )


def _warmup(window: int, min_periods: int | None) -> int:
    return max(resolve_min_periods(window, min_periods), 2) - 1


operator = Op(
    "commodity::rolling_correlation",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    mask_nan_grad=False,
    cases=_cases,
    warmup=_warmup,
    time=(-2, -3),
)
pairs_operator = Op(
    "commodity::rolling_correlation_pairs",
    reference=_pairs_reference,
    fake=_pairs_fake,
    backward=_backward,
    decomposition=_pairs_decomposition,
    mask_nan_grad=False,
    cases=partial(_cases, packed=True),
    warmup=_warmup,
)
