"""`Positive`, `Interval` and `orthogonal_gates`."""

import copy
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.export import Dim
from torch.nn.utils.parametrize import register_parametrization

from torchcommodity import nn


@given(p=st.floats(1e-12, 1e6), unit=st.floats(1e-6, 1e4))
def test_positive_recovers_assigned_values(p: float, unit: float) -> None:
    constraint, value = nn.Positive(unit), torch.tensor([p], dtype=torch.double)
    torch.testing.assert_close(constraint(constraint.right_inverse(value)), value, rtol=1e-12, atol=0)


@given(share=st.floats(1e-6, 1 - 1e-6), low=st.floats(-10, 10), width=st.floats(0.1, 10))
def test_interval_recovers_assigned_values(share: float, low: float, width: float) -> None:
    constraint, value = nn.Interval(low, low + width), torch.tensor([low + share * width], dtype=torch.double)
    torch.testing.assert_close(constraint(constraint.right_inverse(value)), value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("constraint", [nn.Positive(0.1), nn.Interval(0.0, 0.2)], ids=str)
def test_constraint_holds_in_training(constraint: torch.nn.Module) -> None:
    layer = torch.nn.Linear(3, 4)
    torch.nn.init.uniform_(layer.weight, 0.05, 0.15)
    before = layer.weight.detach().clone()
    register_parametrization(layer, "weight", constraint)
    torch.testing.assert_close(layer.weight, before)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    for sign in (1, -1):
        for _ in range(20):
            optimizer.zero_grad()
            (sign * layer.weight.sum()).backward()
            optimizer.step()
        assert (layer.weight > 0).all()
        assert isinstance(constraint, nn.Positive) or (layer.weight < 0.2).all()


@pytest.mark.parametrize("constraint", [nn.Positive(), nn.Interval(0.0, 0.2)], ids=str)
def test_constraint_on_a_new_layer_names_a_remedy_that_works(constraint: torch.nn.Module) -> None:
    layer = torch.nn.Linear(30, 20)
    with pytest.raises(ValueError, match=r"got invalid='\d+ of 600 values', smallest=.*, largest=.*") as error:
        register_parametrization(layer, "weight", constraint)
    assert len(str(error.value)) < 250  # not the weights
    remedy = re.search(r"for example by (layer\.weight\.data\.\S+\(.*?\)(?:\.\S+\(.*?\))?);", str(error.value))
    assert remedy
    exec(remedy[1], {"layer": layer})
    register_parametrization(layer, "weight", constraint)
    layer.weight.sum().backward()
    assert (layer.parametrizations.weight.original.grad > 0).all()


def orthogonal_error(lstm: torch.nn.Module) -> float:
    """Largest error of W W^T = I over all gates of all layers."""
    errors = []
    for name in ("weight_hh_l0", "weight_hh_l1", "weight_hh_l0_reverse"):
        if hasattr(lstm, name):
            blocks: Tensor = getattr(lstm, name).unflatten(0, (4, -1))
            errors.append((blocks @ blocks.mT - torch.eye(blocks.shape[-1])).abs().max().item())
    return max(errors)


@pytest.mark.parametrize("settings", [{"num_layers": 2}, {"bidirectional": True}], ids=str)
@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_orthogonal_gates_stay_orthogonal_in_training(
    settings: dict[str, object], make: type[torch.optim.Optimizer]
) -> None:
    torch.manual_seed(0)
    lstm = nn.orthogonal_gates(nn.LSTM(3, 8, batch_first=True, **settings))  # type: ignore[arg-type]
    assert orthogonal_error(lstm) < 1e-5
    before, x = lstm.weight_hh_l0.detach().clone(), torch.randn(4, 30, 3)
    optimizer = make(lstm.parameters(), lr=0.03)  # type: ignore[call-arg]
    for _ in range(50):
        optimizer.zero_grad()
        (lstm(x)[0] - x.roll(1, 1).mean(-1, keepdim=True)).square().mean().backward()
        optimizer.step()
    assert orthogonal_error(lstm) < 1e-5
    assert (lstm.weight_hh_l0 - before).abs().max() > 1e-3


def test_orthogonal_gates_start_from_the_orthogonal_factors() -> None:
    torch.manual_seed(0)
    plain = nn.LSTM(3, 5)
    lstm = nn.orthogonal_gates(copy.deepcopy(plain))
    for block, q in zip(plain.weight_hh_l0.chunk(4), lstm.weight_hh_l0.chunk(4)):
        r = q.mT @ block  # block = Q R
        torch.testing.assert_close(r, r.triu(), rtol=0, atol=1e-6)


def test_orthogonal_gates_state_dict_round_trips() -> None:
    lstm = nn.orthogonal_gates(nn.LSTM(3, 5))
    other = nn.orthogonal_gates(nn.LSTM(3, 5))
    other.load_state_dict(lstm.state_dict())
    x = torch.randn(7, 2, 3)
    torch.testing.assert_close(other(x), lstm(x))
    torch.testing.assert_close(copy.deepcopy(lstm)(x), lstm(x))


@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
@pytest.mark.slow
@pytest.mark.export
def test_orthogonal_gates_export_with_dynamic_batch_and_time() -> None:
    torch._dynamo.reset()
    lstm, x = nn.orthogonal_gates(nn.LSTM(3, 5, batch_first=True)), torch.randn(2, 7, 3)
    program = torch.export.export(lstm, (x,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), strict=True)
    longer = torch.randn(3, 11, 3)
    torch.testing.assert_close(program.module()(longer), lstm(longer))


def test_constraints_reject_bad_values() -> None:
    with pytest.raises(ValueError, match=r"Positive: the parameter must be > 0; .*; got parameter=-1.0"):
        nn.Positive().right_inverse(torch.tensor([-1.0]))
    with pytest.raises(ValueError, match=r"Positive: unit must be finite and > 0; got unit=0\.0"):
        nn.Positive(0.0)
    with pytest.raises(ValueError, match="Interval: low must be < high, and both finite; got low=1, high=1"):
        nn.Interval(1, 1)
    with pytest.raises(ValueError, match=r"Interval: the parameter must be between 0 and 1; .*; got parameter=1.0"):
        nn.Interval(0, 1).right_inverse(torch.tensor([1.0]))
    with pytest.raises(TypeError, match=r"lstm must be a torchcommodity\.nn\.LSTM, .*; got lstm='torch\.nn"):
        nn.orthogonal_gates(torch.nn.LSTM(3, 5))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lstm must not be parametrized already"):
        nn.orthogonal_gates(nn.orthogonal_gates(nn.LSTM(3, 5)))


@pytest.mark.parametrize("unit", ["1", [1.0], None])
def test_positive_refuses_a_unit_that_is_no_number(unit: Any) -> None:
    with pytest.raises(
        TypeError, match=f"^Positive: unit must be a number or a Tensor; got unit={re.escape(repr(unit))}$"
    ):
        nn.Positive(unit)
