"""`MetadataTensor`: which metadata results carry, gradients, copies and serialization."""

import copy
import io
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_opkit import MetadataTensor

METADATA = {"symbols": ("WTI", "CORN"), "unit": "$"}


def panel() -> MetadataTensor:
    return MetadataTensor(torch.arange(1.0, 7.0).reshape(3, 2), **METADATA)


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
def test_metadata_tensor_function_keeps_metadata(name):
    result = FUNCTIONS[name](panel())
    assert type(result) is MetadataTensor
    assert dict(result.metadata) == METADATA


def test_metadata_tensor_tuple_results_keep_metadata():
    values, indices = panel().max(dim=0)
    assert dict(values.metadata) == dict(indices.metadata) == METADATA
    assert all(dict(part.metadata) == METADATA for part in panel().split(1))


OTHER_RESULTS = {
    "item": (lambda x: x.sum().item(), 21.0),
    "shape": (lambda x: x.shape, torch.Size([3, 2])),
    "dim": (lambda x: x.dim(), 2),
    "equal": (lambda x: torch.equal(x, x), True),
    "list": (lambda x: x.tolist(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "numpy": (lambda x: x.numpy().sum(), 21.0),
    "bool": (lambda x: bool((x > 0).all()), True),
}


@pytest.mark.parametrize("name", OTHER_RESULTS)
def test_metadata_tensor_other_results_are_unchanged(name):
    function, expected = OTHER_RESULTS[name]
    assert function(panel()) == expected


def test_metadata_tensor_concatenation_keeps_equal_entries():
    a = MetadataTensor([1.0], unit="$", source="EIA")
    b = MetadataTensor([2.0], unit="EUR", source="EIA", note="b only")
    for concatenate in (torch.cat, torch.stack, torch.hstack, torch.vstack):
        assert dict(concatenate([b, a, torch.ones(1)]).metadata) == {"source": "EIA"}
    assert dict(torch.cat([b, torch.ones(1)]).metadata) == dict(b.metadata)


def test_metadata_tensor_uses_metadata_of_the_first_operand():
    a, b = MetadataTensor([1.0], unit="$"), MetadataTensor([2.0], unit="EUR", note="b only")
    assert dict((a + b).metadata) == {"unit": "$"}
    assert dict((b + a).metadata) == {"unit": "EUR", "note": "b only"}
    assert torch.where(torch.tensor([True]), a, b).metadata["unit"] == "$"
    assert torch.add(a, other=b).metadata["unit"] == "$"


def test_metadata_tensor_in_place_keeps_metadata():
    a, b = MetadataTensor([1.0], unit="$"), MetadataTensor([2.0], unit="EUR")
    assert a.mul_(b).metadata["unit"] == "$"
    torch.add(b, b, out=a)
    assert a.metadata["unit"] == "$"
    assert a.tolist() == [4.0]


def test_metadata_tensor_gradient():
    leaf = torch.ones(3, requires_grad=True)
    MetadataTensor(leaf, unit="$").square().sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_metadata_tensor_plain_and_with_metadata_are_views():
    x = panel()
    assert type(x.plain()) is torch.Tensor
    assert x.plain().data_ptr() == x.data_ptr()
    assert dict(x.with_metadata(unit="EUR").metadata) == {**METADATA, "unit": "EUR"}
    assert dict(x.metadata) == METADATA
    with pytest.raises(TypeError):
        x.metadata["unit"] = "EUR"


def test_metadata_tensor_repr():
    assert repr(MetadataTensor([1.0], unit="$")) == "MetadataTensor(tensor([1.]), metadata={'unit': '$'})"


def test_metadata_tensor_torch_save_round_trip():
    buffer = io.BytesIO()
    torch.save(panel(), buffer)
    buffer.seek(0)
    assert dict(torch.load(buffer, weights_only=False).metadata) == METADATA


@given(
    values=st.lists(st.floats(allow_nan=True, width=64), max_size=20),
    metadata=st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(max_size=5)),
)
def test_metadata_tensor_pickle_and_deepcopy_are_exact(values, metadata):
    x = MetadataTensor(torch.tensor(values, dtype=torch.float64), **metadata)
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert dict(other.metadata) == metadata
        assert other.numpy().tobytes() == x.numpy().tobytes()


def test_metadata_in_one_mapping_raises_an_error() -> None:
    with pytest.raises(
        TypeError, match=r"MetadataTensor: pass each entry by name: .* got metadata=\{'owner': 'desk'\}"
    ):
        MetadataTensor([1.0], metadata={"owner": "desk"})


@pytest.mark.parametrize("name", ["dtype", "device", "requires_grad"])
def test_metadata_tensor_refuses_the_arguments_of_tensors(name: str) -> None:
    with pytest.raises(TypeError, match=rf"MetadataTensor: {name} is not an entry: .*as_tensor\(data, {name}="):
        MetadataTensor([1.0], **{name: None})
