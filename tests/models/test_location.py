"""Location of a forecast: what later rows, other symbols, live updates, dtypes and files do to it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity import data
from torchcommodity.models import Har, HarConfig, Location, ModelInputs
from torchcommodity.training import calibrate, model_inputs

ROWS = 2200


def panel_with_gaps() -> data.Panel:
    """Two oils and two references: one that comes late, has a gap of thirty rows and ends, and one with few prices."""
    panel = data.embedded(["WTI", "BRENT", "HEATING_OIL_NYH", "GASOLINE_NYH"]).between("2004-01-01", "2012-12-31")
    panel = panel.with_references(["HEATING_OIL_NYH", "GASOLINE_NYH"])._rows(np.arange(len(panel.dates)) < ROWS)
    assert panel.references is not None
    prices = panel.references.values.plain().clone()
    prices[:40, 0] = prices[1500:1530, 0] = prices[2150:, 0] = torch.nan
    prices[1800:1808, 1] = torch.nan
    values = panel.values.plain().clone()
    values[1600, 0], values[1700:1703, 1] = -37.63, torch.nan
    references = replace(panel.references, values=type(panel.values)(prices))
    return replace(panel, values=type(panel.values)(values), references=references)


@pytest.fixture(scope="module")
def inputs() -> ModelInputs:
    panel = panel_with_gaps()
    assert panel.references is not None
    return model_inputs(panel, 126, references=panel.references.symbols)


@pytest.fixture(scope="module")
def har(inputs: ModelInputs) -> Har:
    har = Har(2, HarConfig(references=("HEATING_OIL_NYH", "GASOLINE_NYH")))
    calibrate(har, inputs, symmetry=1.0)
    assert har.location is not None
    assert har.location.pairs is not None
    assert {2, 3} <= set(har.location.pairs[:, 1].tolist())
    return har


@torch.no_grad()
def shift(har: Har, inputs: ModelInputs, **options: int) -> Tensor:  # (L, H, N)
    return har(*inputs.batch(), **options).shift[0]


def changed_after(inputs: ModelInputs, row: int, name: str) -> ModelInputs:
    x = getattr(inputs, name).clone()
    x[row + 1 :] = x[row + 1 :] * 3 + (x[row + 1 :] if x.dtype.is_floating_point else 100)
    if x.dtype.is_floating_point:
        x[row + 1 :: 7] = torch.nan
    return inputs._replace(**{name: x})


@pytest.mark.parametrize("name", ["prices", "references", "days"])
@pytest.mark.parametrize("row", [700, 1510, 2160])
def test_location_does_not_look_ahead(har: Har, inputs: ModelInputs, name: str, row: int) -> None:
    expected, actual = shift(har, inputs), shift(har, changed_after(inputs, row, name))
    assert torch.equal(actual[: row + 1], expected[: row + 1])
    assert not torch.equal(actual[row + 1 :], expected[row + 1 :])


def test_location_of_every_row_is_that_of_the_rows_up_to_it(har: Har, inputs: ModelInputs) -> None:
    expected = shift(har, inputs)
    for stop in (253, 1000, 1503, 1540, 1806, 2155, ROWS):
        assert torch.equal(shift(har, inputs.before(stop))[-1], expected[stop - 1])


@pytest.mark.parametrize("rows", [1, 7, 500])
def test_last_rows_of_a_location_have_the_bits_of_all_rows(har: Har, inputs: ModelInputs, rows: int) -> None:
    assert torch.equal(shift(har, inputs, last_rows=rows), shift(har, inputs)[-rows:])


@pytest.mark.parametrize("cuts", [[10, 11, 12], [1, 41, 252, 1505, 1531, 1601, 1703, 1809, 2156], [1499, 1500, 1529]])
@torch.no_grad()
def test_location_row_by_row_has_the_bits_of_one_call(har: Har, inputs: ModelInputs, cuts: list[int]) -> None:
    tensors: dict[str, Tensor] = {}
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, ROWS]):
        past = Past(tensors)
        parts.append(har(*inputs.before(stop).after(start).batch(), past=past).shift[0])
        tensors = past.tensors
    assert torch.equal(torch.cat(parts), shift(har, inputs))


def test_location_on_rows_of_its_own_symbol_ignores_rows_without_its_price(har: Har, inputs: ModelInputs) -> None:
    """Rows on which nothing trades, and rows on which only the other symbol does."""
    count = 3
    at = torch.tensor([300, 1505, 2100])
    old = torch.ones(ROWS + count, dtype=torch.bool)
    old[at + torch.arange(count)] = False
    assert inputs.references is not None
    assert inputs.days is not None

    def spread(x: Tensor, fill: float) -> Tensor:
        result = x.new_full((ROWS + count, *x.shape[1:]), fill)
        result[old] = x
        return result

    # trading days between those of the panel: their dates do not matter, they are not rows of any symbol
    empty = ModelInputs(
        spread(inputs.prices, torch.nan),
        references=spread(inputs.references, torch.nan),
        days=spread(inputs.days, 12000.0),
    )
    expected, actual = shift(har, inputs), shift(har, empty)
    assert torch.equal(actual[old], expected)
    assert torch.equal(actual[~old], expected[at - 1])
    references = empty.references
    assert references is not None
    references = references.clone()
    references[~old] = 70.0  # prices of references on a row without any of a symbol are not used
    assert torch.equal(shift(har, empty._replace(references=references)), actual)
    other = empty.prices.clone()
    other[~old, 1] = 70.0
    with_other = shift(har, empty._replace(prices=other))
    assert har.location is not None
    assert har.location.pairs is not None
    if [0, 1] not in har.location.pairs.tolist():
        assert torch.equal(with_other[old][..., 0], expected[..., 0])
    assert torch.equal(with_other[~old][..., 0], expected[at - 1][..., 0])


def test_reference_older_than_five_rows_adds_nothing(har: Har, inputs: ModelInputs) -> None:
    assert inputs.references is not None
    assert har.location is not None
    assert har.location.pairs is not None
    deviations = har.location.deviations(inputs.prices[None], inputs.references[None], Past(), ROWS)
    assert deviations is not None
    k = har.location.pairs.tolist().index([0, 2])
    x = deviations[0, :, k]
    assert (x[1495:1505] != 0).all()
    assert (x[1505:1530] == 0).all()
    assert x[1530] != 0
    assert (x[2150:2155] != 0).all()
    assert (x[2155:] == 0).all()
    first = int((inputs.references[:, 0] > 0).nonzero()[0])
    values = (inputs.prices[first:, 0] > 0).cumsum(0)
    known = first + int((values == 126).nonzero()[0])
    assert first >= 40
    assert (x[:known] == 0).all()
    assert x[known] != 0


def test_location_is_within_half_a_standard_deviation(har: Har, inputs: ModelInputs) -> None:
    assert inputs.references is not None
    far = inputs._replace(references=torch.where(torch.arange(ROWS)[:, None] < 1000, 1.0, 1e6) * inputs.references)
    with torch.no_grad():
        adjusted = har.adjust_rolls(far.unsqueeze())
        variance = har.slow_variance(har.variance_terms(adjusted))[0]
    horizons = torch.tensor(har.config.horizons)[:, None]
    limit = 0.5 * (horizons * variance[:, None]).sqrt()
    m = shift(har, far)
    warm = limit.isfinite()
    assert (m[warm].abs() <= limit[warm]).all()
    assert (m[~warm] == 0).all()
    assert (m[warm].abs() == limit[warm]).any()


def test_location_without_dates_has_no_season_and_without_references_no_pairs_of_them(
    har: Har, inputs: ModelInputs
) -> None:
    assert inputs.references is not None
    none = inputs._replace(days=None, references=torch.full_like(inputs.references, torch.nan))
    location = har.location
    assert location is not None
    assert location.pairs is not None
    only = Location(2, har.config)
    kept = location.pairs[:, 1] < 2
    if not kept.any():
        assert (shift(har, none) == 0).all()
        return
    only.set_pairs(location.pairs[kept], location.coefficients[:, kept], location.rows[kept])
    other = Har(2, har.config)
    other.load_state_dict({k: v for k, v in har.state_dict().items() if "location" not in k}, strict=False)
    other.location = only
    torch.testing.assert_close(shift(other, none), shift(har, none), rtol=0, atol=1e-15)


def test_state_of_a_location_is_read_with_its_own_number_of_pairs(har: Har, inputs: ModelInputs) -> None:
    fresh = Har(2, har.config)
    assert (shift(fresh, inputs) == 0).all()
    fresh.load_state_dict(har.state_dict())
    assert torch.equal(shift(fresh, inputs), shift(har, inputs))
    few = Har(2, har.config)
    assert few.location is not None
    few.location.set_pairs(torch.tensor([[1, 0]]), torch.zeros(4, 1, dtype=torch.double), torch.tensor([600]))
    few.load_state_dict(har.state_dict())
    assert torch.equal(shift(few, inputs), shift(har, inputs))


def test_state_without_pairs_replaces_one_with_pairs(har: Har, inputs: ModelInputs) -> None:
    none, other = Har(2, har.config), Har(2, har.config)
    other.load_state_dict(har.state_dict())
    other.load_state_dict(none.state_dict())
    assert other.location is not None
    assert other.location.pairs is None
    assert (shift(other, inputs) == 0).all()


def test_location_of_float32_prices_is_float32(har: Har, inputs: ModelInputs) -> None:
    assert inputs.references is not None
    narrow = inputs._replace(prices=inputs.prices.float(), references=inputs.references.float())
    m = shift(har, narrow)
    assert m.dtype == torch.float32
    torch.testing.assert_close(m.double(), shift(har, inputs), rtol=1e-2, atol=1e-4)


def test_gradients_of_a_location_are_finite_with_missing_prices(har: Har, inputs: ModelInputs) -> None:
    assert inputs.references is not None
    prices, references = inputs.prices.clone().requires_grad_(), inputs.references.clone().requires_grad_()
    leaves = inputs._replace(prices=prices, references=references)
    har(*leaves.batch()).shift.sum().backward()
    for x in (prices, references):
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert (x.grad[~(x > 0)] == 0).all()
        assert (x.grad != 0).any()


@torch.no_grad()
def test_batch_of_panels_has_the_bits_of_each(har: Har, inputs: ModelInputs) -> None:
    assert inputs.references is not None
    assert inputs.days is not None
    first, second = inputs.before(2000), inputs.before(2100).after(100)
    batch = [torch.stack([a, b]) for a, b in zip((first[0], first[4], first[5]), (second[0], second[4], second[5]))]
    m = har(batch[0], references=batch[1], days=batch[2]).shift
    assert torch.equal(m[0], shift(har, first))
    assert torch.equal(m[1], shift(har, second))
