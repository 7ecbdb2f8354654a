"""The mark of synthetic values: operations, files and the store keep it."""

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from torch_opkit import MetadataTensor
from torchcommodity import data, ops
from torchcommodity.data import DataError, Panel, SyntheticTensor, is_synthetic, to_panel
from torchcommodity.scenarios import Scenarios

REAL = torch.linspace(0.1, 1.0, 6).reshape(3, 2).double()
OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda x: x[:2, 0],
    "clone": lambda x: x.clone().detach(),
    "real + synthetic": lambda x: REAL + x,
    "metadata * synthetic": lambda x: data.embedded().values[:3, :2] * x,
    "cat": lambda x: torch.cat([data.embedded().values[:3, :2], x]),
    "where": lambda x: torch.where(REAL > 0.5, REAL, x),
    "dtype": lambda x: x.to(torch.float32),
    "native operator": lambda x: ops.ewm_mean(x, halflife=2.0),
    "deepcopy": copy.deepcopy,
    "with_metadata": lambda x: x.with_metadata(note="mine"),  # type: ignore[attr-defined]
    "MetadataTensor": lambda x: MetadataTensor(x),
    "module": lambda x: torch.nn.Linear(2, 2).double()(x),
}


@pytest.fixture
def prices() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2014-01-01", "2019-01-03")


@pytest.fixture
def path(prices: Panel) -> Panel:
    """Twenty rows of generated prices."""
    noise = 0.01 * torch.randn(1, 20, 2, generator=torch.Generator().manual_seed(0)).double()
    return Scenarios(SyntheticTensor(noise), ("WTI", "BRENT"), "noise").to_panel(0, prices)


@pytest.mark.parametrize("name", OPERATIONS)
def test_synthetic_tensor_operations_keep_the_mark(name: str) -> None:
    assert is_synthetic(OPERATIONS[name](SyntheticTensor(REAL)))


def test_synthetic_tensor_saved_keeps_the_mark() -> None:
    file = io.BytesIO()
    torch.save(SyntheticTensor(REAL), file)
    file.seek(0)
    assert is_synthetic(torch.load(file, weights_only=False))


@pytest.mark.parametrize(
    "write", [lambda x, y: x.copy_(y), lambda x, y: x.__setitem__(0, y[0]), lambda x, y: torch.add(y, y, out=x)]
)
def test_synthetic_tensor_is_not_written_into_real_ones(write: Callable[[Tensor, Tensor], Any]) -> None:
    real = REAL.clone()
    with pytest.raises(ValueError, match="expected to write synthetic values into a SyntheticTensor"):
        write(real, SyntheticTensor(-REAL))
    assert torch.equal(real, REAL)


def test_synthetic_panel_keeps_the_mark_in_frames_files_and_the_store(path: Panel, tmp_path: Path) -> None:
    assert to_panel(path.to_pandas()).synthetic
    path.to_pandas().to_csv(tmp_path / "wide.csv")
    assert data.read(tmp_path / "wide.csv").synthetic
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(path, "path")
    assert store.load("path").synthetic


def test_synthetic_source_column_marks_a_file(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("date,symbol,close,source\n2020-01-02,WTI,60,eia\n2020-01-03,WTI,61,synthetic\n")
    assert data.read(file).synthetic


def test_synthetic_values_need_a_synthetic_publisher(prices: Panel) -> None:
    real = prices.between("2018-12-27")
    with pytest.raises(DataError, match="expected 'synthetic' as publisher of synthetic values"):
        Panel(SyntheticTensor(real.values), real.dates, real.symbols, real.units, real.provenance)


def test_synthetic_column_of_a_mixed_panel(prices: Panel) -> None:
    frame = prices.between("2018-12-01").to_pandas().assign(**{"synthetic:WTI": 50.0})
    mixed = to_panel(frame)
    assert mixed.synthetic
    assert mixed["synthetic:WTI"].synthetic
    assert not mixed["WTI"].synthetic
