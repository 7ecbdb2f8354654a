"""`WindowDataset`: inputs end at the origin, targets follow their definition, and none reaches the next part."""

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader

from torchcommodity import data, nn, ops
from torchcommodity.data import Panel, Window, WindowDataset

NAN = float("nan")
PRICES = st.sampled_from([1.0, 2.0, 5.0, 7.5, 3.0, NAN, 0.0, -37.63])


def make_panel(values: Tensor) -> Panel:
    """Numbers as a panel, to test the definition."""
    rows, columns = values.shape
    dates = np.datetime64("2000-01-03") + np.arange(rows)
    record = data.Provenance("test", "", "", "", "", "")
    return Panel(values, dates, tuple(f"S{n}" for n in range(columns)), ("",) * columns, (record,) * columns)


def make_windows(panel: Panel, lookback: int, horizons: Any, **options: Any) -> WindowDataset:
    return WindowDataset(panel, lookback, horizons, dtype=torch.double, **options)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, int, list[int]]:
    rows, columns = draw(st.integers(8, 14)), draw(st.integers(1, 3))
    values = draw(st.lists(PRICES, min_size=rows * columns, max_size=rows * columns))
    lookback = draw(st.integers(1, 4))
    horizons = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
    return torch.tensor(values, dtype=torch.double).view(rows, columns), lookback, sorted(horizons)


def definition(column: list[float], row: int, horizon: int) -> tuple[float, int]:
    """Log-return from a row over the column's own rows, and the row on which it ends; NaN and -1 without one."""
    later = [t for t in range(row + 1, len(column)) if column[t] > 0]
    if not column[row] > 0 or len(later) < horizon:
        return NAN, -1
    end = later[horizon - 1]
    return math.log(column[end]) - math.log(column[row]), end


def expected_windows(values: Tensor, lookback: int, horizons: list[int], parts: range, end: int) -> dict[int, Tensor]:
    """Targets (H, N) by origin; NaN where they end on row `end` or later."""
    columns, expected = values.T.tolist(), {}
    for row in range(max(parts.start, lookback - 1), parts.stop):
        pairs = [[definition(column, row, h) for column in columns] for h in horizons]
        targets = torch.tensor([[value if stop < end else NAN for value, stop in line] for line in pairs])
        if targets.isfinite().any():
            expected[row] = targets
    return expected


def same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)


@settings(max_examples=50)
@given(case=cases())
def test_window_dataset_targets_and_inputs_follow_the_definition(case: tuple[Tensor, int, list[int]]) -> None:
    values, lookback, horizons = case
    expected = expected_windows(values, lookback, horizons, range(len(values)), len(values))
    assume(expected)
    windows = make_windows(make_panel(values), lookback, horizons)
    assert windows.rows.tolist() == list(expected)
    assert windows.horizons == tuple(horizons)
    for i, window in enumerate(windows):  # type: ignore[var-annotated, arg-type]
        assert window.row == windows.rows[i]
        torch.testing.assert_close(window.targets.float(), expected[window.row].float(), equal_nan=True)
        assert same(window.inputs, values[window.row - lookback + 1 : window.row + 1])


@settings(max_examples=50)
@given(case=cases(), choice=st.data())
def test_window_dataset_split_keeps_targets_out_of_the_next_part(
    case: tuple[Tensor, int, list[int]], choice: st.DataObject
) -> None:
    values, lookback, horizons = case
    stop = choice.draw(st.integers(lookback + 1, len(values) - 2))
    start = choice.draw(st.integers(stop, len(values) - 2))
    parts, ends = (range(stop), range(start, len(values))), (start, len(values))
    expected = [expected_windows(values, lookback, horizons, part, end) for part, end in zip(parts, ends)]
    assume(all(expected))
    windows = make_windows(make_panel(values), lookback, horizons)
    for part, targets, end in zip(windows.split(*parts), expected, ends):
        assert part.rows.tolist() == list(targets)
        torch.testing.assert_close(part.targets.float(), torch.stack([*targets.values()]).float(), equal_nan=True)
        known = part.targets.isfinite()
        assert (data.target_rows(values, horizons)[part.rows][known] < end).all()


@settings(max_examples=50)
@given(case=cases(), choice=st.data())
def test_window_dataset_earlier_windows_do_not_depend_on_later_prices(
    case: tuple[Tensor, int, list[int]], choice: st.DataObject
) -> None:
    values, lookback, horizons = case
    row = choice.draw(st.integers(lookback + 1, len(values)))
    changed = torch.cat([values[:row], choice.draw(PRICES) * torch.ones_like(values), 9 * torch.ones_like(values)])
    assume(expected_windows(values, lookback, horizons, range(row), row))
    before, after = (
        make_windows(make_panel(torch.cat([x, torch.ones(20, x.shape[1])])), lookback, horizons)
        for x in (values, changed)
    )
    before, after = (x.split(range(row), range(row, row + 15))[0] for x in (before, after))
    assert torch.equal(before.rows, after.rows)
    assert same(before.targets, after.targets)
    assert same(before.features, after.features)
    assert all(same(x.inputs, y.inputs) for x, y in zip(before, after))  # type: ignore[call-overload]


@pytest.mark.parametrize("stride", [1, 3, 10])
def test_window_dataset_stride_counts_rows_between_origins(stride: int) -> None:
    windows = make_windows(make_panel(torch.arange(1.0, 41.0)[:, None]), 5, [2, 7], stride=stride)
    assert windows.rows.tolist() == list(range(4, 38, stride))  # 37 is the last with a target of two rows
    assert len(windows) == math.ceil((40 - 5 + 1 - 2) / stride)


@pytest.fixture(scope="module")
def panel() -> Panel:
    return data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01", "2020-12-31")


def test_window_dataset_split_is_safe_with_an_embargo_shorter_than_the_horizon(panel: Panel) -> None:
    windows = make_windows(panel, 20, ["1w", "6m"])
    split = data.walk_forward(panel.dates, test_start=2019, horizon=5)[0]
    train, test = windows.split(split.train, split.test)
    first, ends = split.test.start, data.target_rows(panel.values.plain(), windows.horizons)[train.rows]
    assert (ends >= first).any()  # in the panel there is such a target
    assert train.targets[ends >= first].isnan().all()
    assert train.targets[:, 0].isfinite().any(-1)[-20:].all()  # targets of a week are known until the end
    assert test.rows[0] == first


def test_window_dataset_split_of_a_part_keeps_its_end(panel: Panel) -> None:
    windows = make_windows(panel, 20, "1m")
    past, _ = windows.split(range(1000), range(1000, len(panel)))
    train, validation = past.split(range(800), range(800, 1000))
    _, unbounded = windows.split(range(800), range(800, 1000))
    ends = data.target_rows(panel.values.plain(), [21])
    assert ends[validation.rows][validation.targets.isfinite()].max() < 1000
    assert ends[unbounded.rows][unbounded.targets.isfinite()].max() >= 1000
    assert ends[train.rows][train.targets.isfinite()].max() < 800


def test_window_dataset_and_scaler_have_the_same_bits_without_later_years(panel: Panel) -> None:
    split = data.walk_forward(panel.dates, test_start=2018, horizon=126)[0]
    results = []
    for prices in (panel, panel.between(None, "2019-06-28")):
        windows = WindowDataset(prices, 60, ["1w", "6m"], features=ops.log_returns(prices.values))
        train, _ = windows.split(split.train, split.test)
        scaler = nn.StandardScaler().fit(train.features)
        scaled = torch.cat([scaler(window.inputs) for window in train])  # type: ignore[attr-defined]
        results.append((train.rows, train.targets, train.features, scaler.center, scaler.scale, scaled))
    assert all(same(a, b) for a, b in zip(*results))


def test_window_dataset_features_of_a_part_are_the_rows_that_its_windows_read(panel: Panel) -> None:
    indicators = torch.stack([panel.values.plain(), panel.values.plain() ** 2], -1)  # (T, N, 2)
    train, _ = make_windows(panel, 20, 5, features=indicators, stride=7).split(range(30, 400), range(400, 900))
    first, last = int(train.rows[0]), int(train.rows[-1])
    assert 30 <= first < last < 400
    assert same(train.features, indicators[first - 19 : last + 1])
    assert train[0].inputs.shape == (20, 3, 2)


def test_window_dataset_batches_collate_with_rows_and_dates(panel: Panel) -> None:
    windows = WindowDataset(panel, 60, ["1w", "1m"])
    batch = next(iter(DataLoader(windows, batch_size=32, shuffle=True)))
    assert isinstance(batch, Window)
    assert batch.inputs.shape == (32, 60, 3)
    assert batch.targets.shape == (32, 2, 3)
    assert batch.inputs.dtype == batch.targets.dtype == torch.float32
    assert type(batch.inputs) is Tensor
    dates = panel.dates[batch.row.numpy()]
    assert np.isin(dates, windows.dates).all()


def test_window_dataset_keeps_windows_and_prices_when_an_item_is_changed_in_place(panel: Panel) -> None:
    prices = panel.values.plain().clone()
    windows = make_windows(panel, 60, "1w")
    second = windows[1]
    first = windows[0]
    first.inputs.div_(first.inputs[0].clone())
    first.targets.zero_()
    assert same(windows[1].inputs, second.inputs)
    assert windows[0].targets.any()
    assert same(panel.values.plain(), prices)


def test_window_dataset_pickles(panel: Panel) -> None:
    windows = WindowDataset(panel, 60, "1w").split(range(500))[0]
    again = pickle.loads(pickle.dumps(windows))
    assert repr(again) == repr(windows)
    assert same(again[-1].targets, windows[-1].targets)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_window_dataset_loads_with_worker_processes(panel: Panel) -> None:
    windows = WindowDataset(panel, 60, ["1w", "1m"])
    options: dict[str, Any] = {"batch_size": 256, "num_workers": 2}
    batches = zip(DataLoader(windows, **options), DataLoader(windows, batch_size=256))
    assert all(same(x, y) for pair in batches for x, y in zip(*pair))


def test_window_dataset_targets_contain_roll_gaps_unless_prices_are_adjusted() -> None:
    rows = [  # NYMEX crude oil: the June contract of 2020 ended on 19 May
        ("2020-05-18", "CLM20", 31.82),
        ("2020-05-18", "CLN20", 31.65),
        ("2020-05-19", "CLM20", 32.50),
        ("2020-05-19", "CLN20", 31.96),
        ("2020-05-20", "CLN20", 33.49),
    ]
    prices = data.ContractPrices.from_pandas(pd.DataFrame(rows, columns=["date", "contract", "settle"]))
    front, adjusted = (make_windows(prices.continuous("expiry", kind), 1, 1) for kind in ("none", "ratio"))
    torch.testing.assert_close(front.targets[1].item(), math.log(33.49 / 32.50))
    torch.testing.assert_close(adjusted.targets[1].item(), math.log(33.49 / 31.96))  # the July contract


def test_window_dataset_rejects_settings_in_words(panel: Panel) -> None:
    invalid: list[tuple[dict[str, Any], str]] = [
        ({"lookback": 0}, "WindowDataset: lookback must be >= 1; got lookback=0"),
        ({"stride": 0}, "WindowDataset: stride must be >= 1; got stride=0"),
        ({"lookback": 5000}, "lookback and horizons must leave a window with a target; got lookback=5000"),
        ({"horizons": 4000}, r"must leave a window with a target; got lookback=5, horizons=\(4000,\)"),
        ({"features": torch.ones(7, 2)}, r"a row for each of the \d+ rows of the panel; got features \(7, 2\)"),
    ]
    for options, message in invalid:
        with pytest.raises(ValueError, match=message):
            WindowDataset(panel, **({"lookback": 5, "horizons": 5} | options))
    with pytest.raises(ValueError, match="horizons: must be at most 100,000 rows; got 1000000000000"):
        WindowDataset(panel, 5, 10**30)
    with pytest.raises(TypeError, match="panel must be a Panel, see read; got panel='Tensor'"):
        WindowDataset(panel.values.plain(), 5, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dtype must be a floating-point"):
        WindowDataset(panel, 5, 5, dtype=torch.int64)
    with pytest.raises(TypeError, match="features must be a floating-point Tensor"):
        WindowDataset(panel, 5, 5, features=torch.ones(len(panel), 2, dtype=torch.int64))


def test_window_dataset_refuses_synthetic_prices(panel: Panel) -> None:
    with pytest.raises(ValueError, match="WindowDataset: expected real prices"):
        WindowDataset(panel, 5, 5, features=data.SyntheticTensor(torch.ones(len(panel), 1)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((range(500), range(400, 600)), "ascending ranges of the 1801 rows that do not overlap"),
        ((range(500, 600), range(400)), "ascending ranges"),
        ((range(0, 500, 2),), "ascending ranges"),
        ((range(1000, 5000),), "ascending ranges"),
        ((range(-10, 500),), "ascending ranges"),
        (
            (range(10), range(10, 500)),
            r"each part must have a window with a target of lookback=60, .*part=range\(0, 10",
        ),
    ],
)
def test_window_dataset_split_rejects_parts_in_words(panel: Panel, parts: tuple[range, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WindowDataset(panel, 60, 5).split(*parts)


def test_window_dataset_split_rejects_what_is_not_a_range(panel: Panel) -> None:
    split = data.walk_forward(panel.dates, test_start=2019, horizon=5)[0]
    with pytest.raises(TypeError, match=r"each part must be a range of rows; got part=Split\("):
        WindowDataset(panel, 60, 5).split(split)  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [slice(0, 2), [0, 1], "0", None, 1.0])
def test_window_dataset_takes_integers_only(panel: Panel, index: Any) -> None:
    with pytest.raises(TypeError, match="as an integer"):
        WindowDataset(panel, 60, 5)[index]
