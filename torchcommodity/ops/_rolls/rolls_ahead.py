"""Contract rolls between each row and later ones, and the gaps that are expected of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Bad, Cases, Golden, Op, Sample, widest, widest_dtype
from torch_opkit.arguments import check_integer, check_number, check_panel, raise_invalid
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence

MONTHS = 12


class RollsAhead(NamedTuple):
    """Result of `rolls_ahead`."""

    shift: Tensor  # (..., L, H, N)
    counts: Tensor  # (..., L, H, N) int64
    moments: Tensor  # (..., L, 4, N) float64
    passed: Tensor  # (..., T, N) bool
    state: tuple[Tensor, Tensor]  # (..., 24, N) int64, (..., 13, N) float64


def rolls_ahead(
    rolls: Tensor,  # (..., T + A, N) int64
    has_price: Tensor,  # (..., T, N) bool
    returns: Tensor,  # (..., T, N)
    horizons: Sequence[int],
    *,
    last_rows: int | None = None,
    prior: float = 3.0,
    state: tuple[Tensor, Tensor] | None = None,
) -> RollsAhead:
    """Number of contract rolls within each horizon of a row, and the gaps expected of them.

    A roll is passed by the first row with a price on or after its day, whose return contains the gap between the two
    contracts. The gap of a coming roll of month m is expected to be S_m / (C_m + `prior`), S_m and C_m the sum and the
    number of the gaps of that month up to the row.

    Args:
        rolls: Calendar month of a roll on each row, 1 to 12; 0 without one; -1 where the market is closed, a row that
            no horizon counts. The last A rows are the next trading days.
        has_price: Rows with a price.
        returns: Log-returns, with their gaps; NaN is missing.
        horizons: Numbers of open rows, each >= 1. A horizon with fewer open rows ends with the last row.
        last_rows: Results of this number L of last rows, with the same bits. None means all.
        prior: Number of gaps of zero added to those of a month, > 0: shrinks a mean of few gaps.
        state: `state` of the rows before these.

    Returns:
        shift: Sum of the expected gaps of the rolls that are not passed, up to the end of each horizon, in the unit of
            the returns.
        counts: Number of these rolls.
        moments: Sum over months of S_m^2 / C_m; sum of the squares of all gaps; degrees of freedom within months, the
            sum of C_m - 1; number of months with gaps.
        passed: Whether the return of a row contains a gap.
        state: For the rows that follow: waiting rolls and gaps of each month; sums of gaps by month and of all squares.

        Row t depends on prices and returns up to t, and on rolls, which are known ahead. No warm-up, no NaN.

    Raises:
        ValueError, TypeError: If a shape or dtype is wrong, or a setting is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. `shift`, `moments` and sums of the state are
    differentiable in `returns` and the sums before, to any order, in reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> rolls = torch.tensor([[0], [3], [0], [3], [0]])  # two rolls of March; the last row is ahead
        >>> returns = torch.tensor([[torch.nan], [0.04], [0.01], [0.02]])
        >>> ahead = ops.rolls_ahead(rolls, torch.ones(4, 1) > 0, returns, [1])
        >>> ahead.counts.flatten(), ahead.shift.flatten()
        (tensor([1, 0, 1, 0]), tensor([0.0000, 0.0000, 0.0100, 0.0000]))
    """
    name = "rolls_ahead"
    check_panel(name, returns=returns)
    if rolls.dtype != torch.int64 or rolls.dim() != returns.dim() or _frame(rolls) != _frame(returns):
        raise_invalid(name, "rolls must be int64 (..., T + A, N)", dtype=rolls.dtype, rolls=rolls, returns=returns)
    if has_price.dtype != torch.bool or has_price.shape != returns.shape:
        raise_invalid(name, "has_price must be bool, of the shape of returns", has_price=has_price, returns=returns)
    if rolls.shape[-2] < returns.shape[-2]:
        raise_invalid(name, "rolls must have at least the rows of returns", rolls=rolls, returns=returns)
    if not len(horizons):
        raise_invalid(name, "horizons must not be empty", horizons=horizons)
    for horizon in horizons:
        check_integer(name, 1, horizons=horizon)
    if last_rows is not None:
        check_integer(name, 1, maximum=returns.shape[-2], last_rows=last_rows)
    check_number(name, prior=prior)
    if not prior > 0:
        raise_invalid(name, "prior must be > 0", prior=prior)
    before = (None, None) if state is None else (state[0], widest(state[1]))
    shift, counts, moments, passed, *next_state = operator(
        rolls, has_price, returns, list(horizons), last_rows, float(prior), *before
    )
    return RollsAhead(shift, counts, moments, passed, (next_state[0], next_state[1]))


def _frame(x: Tensor) -> tuple[torch.Size, int]:
    return x.shape[:-2], x.shape[-1]


class _Tables(NamedTuple):
    """Rolls and gaps by month, month first in the last three axes; E entries, 12 for earlier rolls and one per row."""

    weights: Tensor  # (..., E, N) number of rolls of an entry
    passed_by: Tensor  # (..., E, N) row that passes it; T = none yet
    cells: Tensor  # (..., E, N) cell of `_month_sums` in which its gap counts
    ahead: list[Tensor]  # (..., 12, L, N) rolls within each horizon
    counts: Tensor  # (..., 12, L, N) number of gaps up to each row
    waiting: Tensor  # (..., 12, N) rolls that the last row has not passed


def _tables(
    rolls: Tensor, has_price: Tensor, returns: Tensor, horizons: list[int], L: int, before: Tensor | None
) -> _Tables:
    T, R = returns.shape[-2], rolls.shape[-2]
    if before is None:
        before = rolls.new_zeros((*rolls.shape[:-2], 2 * MONTHS, rolls.shape[-1]))
    earlier, gaps_before = widest(before[..., :MONTHS, :]), widest(before[..., MONTHS:, :])
    numbers = torch.arange(1, MONTHS + 1, device=rolls.device).unsqueeze(-1)
    rows = torch.arange(R, device=rolls.device).unsqueeze(-1)
    months = torch.cat([numbers.expand_as(earlier), rolls.clamp(0, MONTHS)], -2)
    weights = torch.cat([earlier, widest(rolls > 0)], -2)
    next_price = _next_price(has_price, rows)
    passed_by = torch.cat([next_price[..., :1, :].expand_as(earlier), next_price], -2)
    R += L - T
    scheduled = _month_sums(weights, _cells(torch.cat([0 * numbers, rows]) + (L - T), months, R), R)
    cells = _cells(passed_by + (L - T), months, L)
    passed = _month_sums(weights, cells, L)
    ends = _open_rows_ahead(rolls[..., T - L :, :] >= 0, horizons, L)
    ahead = [scheduled.gather(-2, end.unsqueeze(-3).expand_as(passed)) - passed for end in ends]
    has_gap = ~_gather_rows(returns, passed_by).isnan()
    counts = _month_sums(weights * has_gap, cells, L, gaps_before)
    waiting = scheduled[..., L - 1 : L, :] - passed[..., -1:, :]  # a slice: an index L - 1 makes export fix L
    return _Tables(weights, passed_by, cells, ahead, counts, waiting.squeeze(-2))


def _reference(
    rolls: Tensor,
    has_price: Tensor,
    returns: Tensor,
    horizons: list[int],
    last_rows: int | None = None,
    prior: float = 3.0,
    before_counts: Tensor | None = None,  # (..., 24, N) int64: waiting rolls, gaps
    before_sums: Tensor | None = None,  # (..., 13, N): gaps by month, all squares
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    L = returns.shape[-2] if last_rows is None else last_rows
    tables = _tables(rolls, has_price, returns, horizons, L, before_counts)
    passed, squares, sums = _gap_sums(tables, returns, L, before_sums)
    mean = sums.to(returns) / (tables.counts.to(returns) + prior)
    counts = torch.stack([ahead.sum(-3) for ahead in tables.ahead], -2).long()
    shift = torch.stack([_sum_months(ahead.to(returns) * mean) for ahead in tables.ahead], -2)
    months = tables.counts.clamp(max=1)
    between = _sum_months(sums.square() / tables.counts.clamp(min=1))
    freedom = _sum_months(tables.counts - months)
    moments = torch.stack([between, squares[..., squares.shape[-2] - L :, :], freedom, _sum_months(months)], -2)
    state_counts = torch.cat([tables.waiting, tables.counts[..., -1, :]], -2).long()
    return shift, counts, moments, passed > 0, state_counts, torch.cat([sums[..., -1, :], squares[..., -1:, :]], -2)


def _gap_sums(
    tables: _Tables, returns: Tensor, L: int, before: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:  # (..., T, N), (..., T, N), (..., 12, L, N)
    """Rolls that each row passes, sums of the squares of their gaps, and sums of the gaps by month."""
    T = returns.shape[-2]
    gaps = _gather_rows(returns, tables.passed_by)
    sums = before if before is None else before[..., :MONTHS, :]
    sums = _month_sums(tables.weights * gaps.nan_to_num(0.0), tables.cells, L, sums)
    zeros = torch.zeros_like(tables.weights[..., : T + 1, :])
    passed = zeros.scatter_add(-2, tables.passed_by, tables.weights)[..., :T, :]
    squares = passed * widest(returns).nan_to_num(0.0).square()
    if before is not None:
        squares = torch.cat([before[..., MONTHS:, :], squares], -2).cumsum(-2)[..., 1:, :]
        return passed, squares, sums
    return passed, squares.cumsum(-2), sums


def _fake(
    returns: Tensor, horizons: list[int], last_rows: int | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    *batch, T, N = returns.shape
    shape, wide = (*batch, T if last_rows is None else last_rows, len(horizons), N), widest_dtype(returns.device)
    return (
        returns.new_empty(shape),
        returns.new_empty(shape, dtype=torch.int64),
        returns.new_empty((*shape[:-2], 4, N), dtype=wide),
        returns.new_empty(returns.shape, dtype=torch.bool),
        returns.new_empty((*batch, 2 * MONTHS, N), dtype=torch.int64),
        returns.new_empty((*batch, MONTHS + 1, N), dtype=wide),
    )


def _backward(
    d_shift: Tensor,
    _counts: Tensor | None,
    d_moments: Tensor,
    _passed: Tensor | None,
    _state: Tensor | None,
    d_sums: Tensor,
    *,
    rolls: Tensor,
    has_price: Tensor,
    returns: Tensor,
    horizons: list[int],
    last_rows: int | None,
    prior: float,
    before_counts: Tensor | None,
    before_sums: Tensor | None,
) -> tuple[Tensor | None, ...]:
    # With n_hm rolls of month m within horizon h: shift_h = sum_m n_hm S_m / (C_m + prior), so that
    # dS_m = sum_h dshift_h n_hm / (C_m + prior) + 2 dbetween S_m / C_m; a gap is in S_m of its row and of all later
    # ones, and its square in the sum of squares of these rows. All gaps of a row are its return, so that counts are
    # enough: sums by index would add in any order on a GPU.
    T = returns.shape[-2]
    L = T if last_rows is None else last_rows
    tables = _tables(rolls, has_price, returns.detach(), horizons, T, before_counts)
    values = widest(returns).nan_to_num(0.0)
    before = 0 * tables.waiting if before_counts is None else widest(before_counts[..., MONTHS:, :])
    gaps = torch.cat([before.unsqueeze(-2), tables.counts], -2).diff(dim=-2)  # (..., 12, T, N)
    sums = (gaps * values.unsqueeze(-3)).cumsum(-2)
    if before_sums is not None:
        sums = sums + before_sums[..., :MONTHS, :].unsqueeze(-2)
    counts = _last_rows(tables.counts, L)
    d_month = 2 * d_moments[..., 0, :].unsqueeze(-3) * _last_rows(sums, L) / counts.clamp(min=1)
    for ahead, grad in zip(tables.ahead, widest(d_shift).unbind(-2)):
        d_month = d_month + grad.unsqueeze(-3) * _last_rows(ahead, L) / (counts + prior)
    d_month = _later(d_month, d_sums[..., :MONTHS, :].unsqueeze(-2))
    d_squares = _later(d_moments[..., 1, :], d_sums[..., MONTHS:, :])
    d_gaps = _all_rows(d_month, T) + (2 * values * _all_rows(d_squares, T)).unsqueeze(-3)
    d_returns = torch.where(returns.isnan(), 0, _sum_months(gaps * d_gaps)).to(returns)
    d_before = None if before_sums is None else torch.cat([d_month[..., 0, :], d_squares[..., :1, :]], -2)
    return None, None, d_returns, None, d_before


def _last_rows(x: Tensor, L: int) -> Tensor:
    return x[..., x.shape[-2] - L :, :]


def _all_rows(x: Tensor, T: int) -> Tensor:
    """T rows, of which the given ones are the last; those before repeat the first."""
    first = x[..., :1, :]
    return torch.cat([first.expand(*x.shape[:-2], T - x.shape[-2], x.shape[-1]), x], -2)


def _later(x: Tensor, last: Tensor) -> Tensor:
    """Sum of each row and all later ones, and of one more after the last."""
    return x.flip(-2).cumsum(-2).flip(-2) + last


def _next_price(has_price: Tensor, rows: Tensor) -> Tensor:  # (..., T, N) bool, (R, 1) -> (..., R, N) int64
    """The first row with a price from each row on; T where there is none."""
    T, R = has_price.shape[-2], rows.shape[0]
    here = pad(widest(has_price), (0, 0, 0, R - T)).flip(-2)
    none = torch.arange(T, T + 1, dtype=here.dtype, device=here.device)
    # a recurrence backward in time, exact on integers, since ONNX has no running minimum
    return linear_recurrence(1 - here, here * rows.flip(0), none).flip(-2).long()


def _open_rows_ahead(is_open: Tensor, horizons: list[int], L: int) -> list[Tensor]:  # (..., R, N) -> (..., L, N) each
    """Row of the h-th open row after each of the first L rows."""
    R = is_open.shape[-2]
    count = is_open.cumsum(-2)
    rows = torch.arange(R, device=is_open.device).unsqueeze(-1).expand_as(count)
    # closed rows go to the last entry; an entry without an open row stays at the last row
    places = torch.full_like(pad(count, (0, 0, 0, 1)), R - 1)
    places = places.scatter(-2, torch.where(is_open, count - 1, R), rows)
    return [places.gather(-2, (count[..., :L, :] + h - 1).clamp(max=R - 1)) for h in horizons]


def _gather_rows(x: Tensor, passed_by: Tensor) -> Tensor:  # (..., T, N), (..., E, N) -> (..., E, N)
    """Values at the row that passes each entry, in the widest dtype; NaN or true where there is none."""
    return pad(widest(x), (0, 0, 0, 1), value=1.0 if x.dtype == torch.bool else torch.nan).gather(-2, passed_by)


def _cells(rows: Tensor, months: Tensor, L: int) -> Tensor:  # (..., E, N) or (E, 1), (..., E, N) -> (..., E, N) int64
    """Cells of a table (13, L + 1) by month and row: earlier rows are in the first, later ones in the last."""
    return rows.clamp(0, L) + (L + 1) * months


def _month_sums(
    values: Tensor, cells: Tensor, L: int, before: Tensor | None = None
) -> Tensor:  # (..., E, N), (..., E, N), (..., 12, N) -> (..., 12, L, N)
    """Sums of the values of each month up to each of L rows, and of earlier calls."""
    table = values.new_zeros((*values.shape[:-2], (MONTHS + 1) * (L + 1), values.shape[-1]))
    if before is not None:
        first = pad(before.unsqueeze(-2), (0, 0, 0, L))
        table = table + pad(first, (0, 0, 0, 0, 1, 0)).flatten(-3, -2)
    sums: Tensor = table.scatter_add(-2, cells, values).unflatten(-2, (MONTHS + 1, L + 1))
    return sums[..., 1:, :L, :].cumsum(-2)


def _sum_months(x: Tensor) -> Tensor:  # (..., 12, L, N) -> (..., L, N)
    """Sum over contiguous months: otherwise the order of additions depends on the number of rows."""
    return x.movedim(-3, -1).contiguous().sum(-1)


def _flat(rolls: Tensor, has_price: Tensor, returns: Tensor, *state: Tensor, **settings: Any) -> tuple[Tensor, ...]:
    """The results for the contract, which expects the dtype of the returns: sums are in the widest dtype."""
    before = (state[0], state[1]) if state else None
    *outputs, next_state = rolls_ahead(rolls, has_price, returns, **settings, state=before)
    return tuple(x.to(returns) if x.is_floating_point() else x for x in (*outputs, *next_state))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    has_price = torch.rand(returns.shape, generator=generator) < 0.8
    returns[~has_price | (torch.rand(returns.shape, generator=generator) < 0.1)] = torch.nan
    rolls = torch.randint(-4, 5, (2, 16, 3), generator=generator).clamp(min=-1)
    counts = torch.randint(0, 3, (2, 24, 3), generator=generator)
    state = counts, torch.randn(2, 13, 3, dtype=torch.double, generator=generator)
    months = torch.tensor([0, 3, 0, 3, 0]).unsqueeze(-1)
    column = torch.tensor([torch.nan, 0.04, 0.01, 0.02], dtype=torch.double).unsqueeze(-1)
    every = torch.ones(4, 1, dtype=torch.bool)
    moments = [[0, 0, 0, 0], [0.0016, 0.0016, 0, 1], [0.0016, 0.0016, 0, 1], [0.0018, 0.002, 1, 1]]
    march = (torch.arange(24) == MONTHS + 2).unsqueeze(-1)
    sums = torch.zeros(13, 1, dtype=torch.double)
    sums[2], sums[MONTHS] = 0.06, 0.002
    return Cases(
        function=_flat,
        samples=(
            Sample(rolls, has_price, returns, horizons=[2, 5]),
            Sample(rolls, has_price, returns, *state, horizons=[1, 4, 9], last_rows=3, prior=1.5),
            Sample(rolls[0], has_price[0], returns[0], horizons=[3], last_rows=1),
        ),
        bad=(
            Bad(
                Sample(rolls.double(), has_price, returns, horizons=[2]),
                r"rolls_ahead: rolls must be int64 \(\.\.\., T \+ A, N\)",
            ),
            Bad(
                Sample(rolls[:, :10], has_price, returns, horizons=[2]), "rolls must have at least the rows of returns"
            ),
            Bad(Sample(rolls, returns, returns, horizons=[2]), "has_price must be bool, of the shape of returns"),
            Bad(Sample(rolls, has_price, returns, horizons=[]), r"horizons must not be empty; got horizons=\[\]"),
            Bad(Sample(rolls, has_price, returns, horizons=[0]), "horizons must be >= 1; got horizons=0"),
            Bad(Sample(rolls, has_price, returns, horizons=[2], last_rows=12), "last_rows must be"),
            Bad(Sample(rolls, has_price, returns, horizons=[2], prior=0.0), "prior must be > 0; got prior=0"),
        ),
        golden=(
            Golden(
                Sample(months, every, column, horizons=[1]),
                (
                    torch.tensor([0, 0, 0.01, 0], dtype=torch.double).reshape(4, 1, 1),
                    torch.tensor([1, 0, 1, 0]).reshape(4, 1, 1),
                    torch.tensor(moments, dtype=torch.double).unsqueeze(-1),
                    torch.tensor([False, True, False, True]).unsqueeze(-1),
                    2 * march.long(),
                    sums,
                ),
                "by hand: 0.04 / (1 + 3) is expected in row 2, of the gaps 0.04 and 0.02",
            ),
        ),
    )


operator = Op(
    "commodity::rolls_ahead",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_reference,
    cases=_cases,
    time=None,
)
