"""MetadataTensor: the facts survive, the first operand wins, everything else passes through."""

import copy
import io
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.opkit import MetadataTensor

FACTS = {"symbols": ("WTI", "CORN"), "unit": "$"}


def marked() -> MetadataTensor:
    return MetadataTensor(torch.arange(1.0, 7.0).reshape(3, 2), **FACTS)


FUNCTIONS = {
    "add_plain": lambda x: x + torch.ones(2),
    "plain_add": lambda x: torch.ones(2) + x,
    "scalar": lambda x: 2 * x,
    "log": torch.log,
    "matmul": lambda x: torch.ones(4, 3) @ x,
    "index": lambda x: x[1:, 0],
    "mask": lambda x: x[x > 2],
    "view": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "stack": lambda x: torch.stack([torch.zeros(3, 2), x]),
    "where": lambda x: torch.where(x > 2, x, torch.zeros(())),
    "linear": lambda x: torch.nn.functional.linear(x, torch.nn.Parameter(torch.ones(5, 2))),
    "module": lambda x: torch.nn.Linear(2, 3)(x),
    "keyword": lambda x: torch.sum(input=x, dim=0),
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(torch.float64),
    "in_place": lambda x: x.add_(1),
    "nan_to_num": torch.nan_to_num,
    "new_like": torch.zeros_like,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_metadata_survive(name):
    result = FUNCTIONS[name](marked())
    assert type(result) is MetadataTensor
    assert dict(result.metadata) == FACTS


def test_every_tensor_of_a_tuple_is_marked():
    values, places = marked().max(dim=0)
    assert dict(values.metadata) == dict(places.metadata) == FACTS
    assert all(dict(part.metadata) == FACTS for part in marked().split(1))


PASS_THROUGH = {
    "item": (lambda x: x.sum().item(), 21.0),
    "shape": (lambda x: x.shape, torch.Size([3, 2])),
    "dim": (lambda x: x.dim(), 2),
    "equal": (lambda x: torch.equal(x, x), True),
    "list": (lambda x: x.tolist(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "numpy": (lambda x: x.numpy().sum(), 21.0),
    "bool": (lambda x: bool((x > 0).all()), True),
}


@pytest.mark.parametrize("name", PASS_THROUGH)
def test_what_is_no_tensor_passes_through(name):
    function, expected = PASS_THROUGH[name]
    assert function(marked()) == expected


def test_what_is_joined_keeps_what_all_agree_on():
    a = MetadataTensor([1.0], unit="$", source="EIA")
    b = MetadataTensor([2.0], unit="EUR", source="EIA", note="b only")
    for join in (torch.cat, torch.stack, torch.hstack, torch.vstack):
        assert dict(join([b, a, torch.ones(1)]).metadata) == {"source": "EIA"}
    assert dict(torch.cat([b, torch.ones(1)]).metadata) == dict(b.metadata)


def test_the_first_operand_wins():
    a, b = MetadataTensor([1.0], unit="$"), MetadataTensor([2.0], unit="EUR", note="b only")
    assert dict((a + b).metadata) == {"unit": "$"}
    assert dict((b + a).metadata) == {"unit": "EUR", "note": "b only"}
    assert torch.where(torch.tensor([True]), a, b).metadata["unit"] == "$"
    assert torch.add(a, other=b).metadata["unit"] == "$"


def test_an_operand_written_in_place_keeps_its_own():
    a, b = MetadataTensor([1.0], unit="$"), MetadataTensor([2.0], unit="EUR")
    assert a.mul_(b).metadata["unit"] == "$"
    torch.add(b, b, out=a)
    assert a.metadata["unit"] == "$"
    assert a.tolist() == [4.0]


def test_gradients_flow_and_are_plain_numbers():
    leaf = torch.ones(3, requires_grad=True)
    MetadataTensor(leaf, unit="$").square().sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_plain_and_with_metadata_share_the_numbers():
    x = marked()
    assert type(x.plain()) is torch.Tensor
    assert x.plain().data_ptr() == x.data_ptr()
    assert dict(x.with_metadata(unit="EUR").metadata) == {**FACTS, "unit": "EUR"}
    assert dict(x.metadata) == FACTS
    with pytest.raises(TypeError):
        x.metadata["unit"] = "EUR"


def test_repr_shows_numbers_and_facts():
    assert repr(MetadataTensor([1.0], unit="$")) == "MetadataTensor(tensor([1.]), metadata={'unit': '$'})"


def test_torch_save_round_trip():
    buffer = io.BytesIO()
    torch.save(marked(), buffer)
    buffer.seek(0)
    assert dict(torch.load(buffer, weights_only=False).metadata) == FACTS


@given(
    numbers=st.lists(st.floats(allow_nan=True, width=64), max_size=20),
    facts=st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(max_size=5)),
)
def test_pickle_and_deepcopy_keep_bits_and_facts(numbers, facts):
    x = MetadataTensor(torch.tensor(numbers, dtype=torch.float64), **facts)
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert dict(twin.metadata) == facts
        assert twin.numpy().tobytes() == x.numpy().tobytes()
