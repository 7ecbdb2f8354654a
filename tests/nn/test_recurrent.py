"""`LSTM` against `torch.nn.LSTM`, `LLTM` against a loop over `LLTMCell`; missing rows, export, compilation."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import torch_opkit as opkit
from torchcommodity import nn, ops

SHAPES = [
    {},
    {"num_layers": 2},
    {"bidirectional": True},
    {"num_layers": 3, "bidirectional": True, "bias": False},
    {"batch_first": True, "num_layers": 2},
]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def make_pair(**settings: object) -> tuple[nn.LSTM, torch.nn.LSTM]:
    torch.manual_seed(0)
    reference = torch.nn.LSTM(3, 5, dtype=torch.double, **settings)  # type: ignore[arg-type]
    layer = nn.LSTM(3, 5, dtype=torch.double, **settings)  # type: ignore[arg-type]
    layer.load_state_dict(reference.state_dict())
    return layer, reference


def gradients(layer: torch.nn.Module, x: Tensor, hx: tuple[Tensor, Tensor] | None) -> list[Tensor]:
    leaves = [x.clone().requires_grad_(), *layer.parameters()]
    output, (h, c) = layer(leaves[0], hx)
    loss = output.sin().sum() + h.square().sum() + c.cos().sum()
    return list(torch.autograd.grad(loss, leaves))


@pytest.mark.parametrize("settings", SHAPES, ids=str)
@pytest.mark.parametrize("with_state", [True, False], ids=["state", "zeros"])
def test_lstm_equals_torch(settings: dict[str, object], with_state: bool) -> None:
    layer, reference = make_pair(**settings)
    x, layers = random(4, 7, 3), layer.num_layers * layer.directions
    batch = 4 if layer.batch_first else 7
    hx = (random(layers, batch, 5), random(layers, batch, 5) / 2) if with_state else None
    torch.testing.assert_close(layer(x, hx), reference(x, hx), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradients(layer, x, hx), gradients(reference, x, hx), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize(("batch", "hidden"), [(1, 32), (21, 37), (3, 8)])
def test_lstm_of_sizes_between_blocks_equals_torch(batch: int, hidden: int, dtype: torch.dtype) -> None:
    reference = torch.nn.LSTM(3, hidden, batch_first=True, dtype=dtype)
    layer = nn.LSTM(3, hidden, batch_first=True, dtype=dtype)
    layer.load_state_dict(reference.state_dict())
    x = random(batch, 9, 3).to(dtype)
    torch.testing.assert_close(layer(x), reference(x))
    torch.testing.assert_close(gradients(layer, x, None), gradients(reference, x, None))


def test_lltm_cell_without_a_batch_has_the_gradient_of_one_sample() -> None:
    cell, x, state = nn.LLTMCell(3, 5, dtype=torch.double), random(3), (random(5), random(5) / 2)
    leaves = [x.requires_grad_(), *cell.parameters()]
    actual = torch.autograd.grad(cell(x, state)[0].sum(), leaves)
    one = cell(x[None], (state[0][None], state[1][None]))
    torch.testing.assert_close(actual, torch.autograd.grad(one[0].sum(), leaves))


def test_lstm_without_a_batch() -> None:
    layer, reference = make_pair(num_layers=2)
    x, hx = random(7, 3), (random(2, 5), random(2, 5))
    torch.testing.assert_close(layer(x, hx), reference(x, hx), rtol=1e-10, atol=1e-12)


def test_lstm_state_dict_is_that_of_torch() -> None:
    layer, reference = make_pair(num_layers=2, bidirectional=True)
    torch.nn.init.ones_(layer.weight_hh_l1_reverse)  # type: ignore[arg-type]
    reference.load_state_dict(layer.state_dict())
    assert list(layer.state_dict()) == list(reference.state_dict())
    assert reference.weight_hh_l1_reverse.eq(1).all()


def test_lstm_dropout_in_training_only() -> None:
    layer, reference = make_pair(num_layers=2, dropout=0.5)
    x = random(4, 2, 3)
    assert not layer(x)[0].equal(layer(x)[0])
    torch.testing.assert_close(layer.eval()(x), reference.eval()(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_nan_padding_equals_packing(bidirectional: bool) -> None:
    layer, reference = make_pair(num_layers=2, batch_first=True, bidirectional=bidirectional)
    x, lengths = random(3, 7, 3), torch.tensor([7, 4, 2])
    padded = x.masked_fill((torch.arange(7) >= lengths[:, None])[..., None], torch.nan)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    output, state = layer(padded)
    expected, final = reference(packed)
    expected = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)[0]
    torch.testing.assert_close(state, final, rtol=1e-10, atol=1e-12)
    for sequence, packed_sequence, length in zip(output, expected, lengths):
        torch.testing.assert_close(sequence[:length], packed_sequence[:length], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 5, batch_first=True), nn.LLTM(3, 5, batch_first=True)], ids=str)
def test_recurrent_layers_skip_missing_rows(layer: torch.nn.Module) -> None:
    layer = layer.double()
    x = random(2, 7, 3)
    with_gap = x.clone()
    with_gap[:, 4, 1] = torch.nan
    output, state = layer(with_gap)
    without, final = layer(torch.cat([x[:, :4], x[:, 5:]], 1))
    torch.testing.assert_close(torch.cat([output[:, :4], output[:, 5:]], 1), without)
    torch.testing.assert_close(state, final)
    assert output[:, 4].equal(output[:, 3])


def test_lltm_equals_a_loop_over_lltm_cell() -> None:
    layer, cell = nn.LLTM(3, 5, dtype=torch.double), nn.LLTMCell(3, 5, dtype=torch.double)
    cell.load_state_dict(layer.state_dict())
    x, state = random(7, 2, 3), None
    x[3, 1, 0] = torch.nan
    rows = []
    for row in x:
        state = cell(row, state)
        rows.append(state[0])
    output, (h, c) = layer(x)
    torch.testing.assert_close(output, torch.stack(rows))
    torch.testing.assert_close((h[0], c[0]), state)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (3,)])
def test_lstm_cell_equals_torch(bias: bool, shape: tuple[int, ...]) -> None:
    cell, expected = nn.LSTMCell(3, 5, bias, dtype=torch.double), torch.nn.LSTMCell(3, 5, bias, dtype=torch.double)
    expected.load_state_dict(cell.state_dict())
    cell.load_state_dict(expected.state_dict())
    x, state = random(*shape), (random(*shape[:-1], 5), random(*shape[:-1], 5))
    torch.testing.assert_close(cell(x), expected(x))
    torch.testing.assert_close(cell(x, state), expected(x, state))
    assert repr(cell) == repr(expected)
    parameters = list(cell.parameters()), list(expected.parameters())
    actual, wanted = (
        torch.autograd.grad(sum(y.sin().sum() for y in m(x, state)), ps) for m, ps in zip((cell, expected), parameters)
    )
    torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize(("name", "gates"), [("lstm_cell", (160, 160)), ("lltm_cell", (120,))])
def test_cells_of_many_samples_equal_their_reference(name: str, gates: tuple[int, ...]) -> None:
    operator = opkit.OPERATORS[f"commodity::{name}"]
    columns = [30, 40] if len(gates) == 2 else [70]  # products of this size are by BLAS
    weights = [random(rows, n).requires_grad_() for rows, n in zip(gates, columns)]
    x = random(33, 30)
    x[4, 2] = x[32, 0] = torch.nan
    tensors = [x.requires_grad_(), random(33, 40).requires_grad_(), random(33, 40).requires_grad_(), *weights]
    results = []
    for function in (operator, operator.reference):
        h, c, *_ = function(*tensors)
        results.append([h, c, *torch.autograd.grad(h.sin().sum() + c.cos().sum(), tensors)])
    torch.testing.assert_close(*results)


def test_lstm_equals_a_loop_over_lstm_cell() -> None:
    layer, cell = nn.LSTM(3, 5, dtype=torch.double), nn.LSTMCell(3, 5, dtype=torch.double)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x, state = random(7, 2, 3), None
    x[3, 1, 0] = torch.nan
    rows = []
    for row in x:
        state = cell(row, state)
        rows.append(state[0])
    torch.testing.assert_close(layer(x)[0], torch.stack(rows))


def test_recurrent_layers_of_no_rows_keep_the_state() -> None:
    for layer in (nn.LSTM(3, 5), nn.LLTM(3, 5)):
        state = (torch.rand(1, 2, 5), torch.rand(1, 2, 5))
        output, after = layer(torch.empty(0, 2, 3), state)
        assert output.shape == (0, 2, 5)
        torch.testing.assert_close(after, state)


def test_lstm_autocast_keeps_single_precision() -> None:
    layer, x = nn.LSTM(3, 5, num_layers=2), torch.randn(7, 2, 3)
    expected = layer(x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer(x)[0], expected)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 5, 2, batch_first=True), nn.LLTM(3, 5, batch_first=True)], ids=str)
def test_recurrent_layers_export_with_dynamic_batch_and_time(layer: torch.nn.Module) -> None:
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    program = torch.export.export(layer, (torch.randn(2, 7, 3),), dynamic_shapes=shapes)
    for shape in ((2, 7, 3), (5, 31, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(program.module()(x), layer(x))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_lstm_compiles_with_fullgraph() -> None:
    torch._dynamo.reset()
    layer = nn.LSTM(3, 5, num_layers=2, bidirectional=True)
    x = torch.randn(7, 2, 3)
    compiled = torch.compile(lambda x: layer(x)[0].square().sum(), fullgraph=True)
    expected = torch.autograd.grad(layer(x)[0].square().sum(), list(layer.parameters()))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), list(layer.parameters())), expected)


def test_recurrent_layers_repr() -> None:
    settings = {"num_layers": 2, "bias": False, "batch_first": True, "dropout": 0.1, "bidirectional": True}
    assert repr(nn.LSTM(3, 5, **settings)) == repr(torch.nn.LSTM(3, 5, **settings))  # type: ignore[arg-type]
    assert repr(nn.LLTM(3, 5, bias=False)) == "LLTM(3, 5, bias=False)"
    assert repr(nn.LLTMCell(3, 5)) == "LLTMCell(3, 5)"


def test_recurrent_layers_reject_bad_input() -> None:
    with pytest.raises(ValueError, match=r"LSTM: proj_size must be 0 .*; got proj_size=2"):
        nn.LSTM(3, 5, proj_size=2)
    with pytest.raises(ValueError, match=r"LSTM: dropout must be in \[0, 1\]"):
        nn.LSTM(3, 5, dropout=2.0)
    with pytest.raises(ValueError, match="LLTM: hidden_size must be >= 1"):
        nn.LLTM(3, 0)
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(4, 3)])
    with pytest.raises(
        TypeError, match=r"LSTM: packed sequences are not supported; pad with NaN, .*; got input='PackedSequence'$"
    ):
        nn.LSTM(3, 5)(packed)
    with pytest.raises(ValueError, match=r"LSTM: input must be .* with F = 3; got input \(7, 2, 4\)"):
        nn.LSTM(3, 5)(torch.ones(7, 2, 4))
    for cell in (nn.LSTMCell(3, 5), nn.LLTMCell(3, 5)):
        with pytest.raises(
            ValueError, match=rf"{type(cell).__name__}: input must be .* with F = 3; got input \(2, 4\)"
        ):
            cell(torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"LSTM: h must be \(1, 2, 5\); got h \(1, 3, 5\)"):
        nn.LSTM(3, 5)(torch.ones(7, 2, 3), (torch.ones(1, 3, 5), torch.ones(1, 2, 5)))


def test_lltm_third_derivative() -> None:
    """The backward of the adjoint differentiates its definition: any order exists."""
    x, h, c, w, b = random(1, 2, 2), random(1, 2), random(1, 2) / 2, random(6, 4) / 2, random(6)

    def value(scale: Tensor) -> Tensor:
        return ops.lltm(scale * x, (h, c), w, b)[0].sum()

    one = torch.ones((), dtype=torch.double)
    third = torch.func.grad(torch.func.grad(torch.func.grad(value)))(one)
    step = 1e-4
    second = torch.func.grad(torch.func.grad(value))
    torch.testing.assert_close(third, (second(one + step) - second(one - step)) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("hx", "received"),
    [(torch.zeros(2, 3), r"hx \(2, 3\)"), ((torch.zeros(2, 3), 0.0), "hx="), ((torch.zeros(2, 3),), "hx=")],
)
@pytest.mark.parametrize("function", [ops.lltm_cell, ops.lstm_cell, ops.lltm, ops.lstm])
def test_recurrent_operators_refuse_a_state_that_is_no_pair(function: Any, hx: Any, received: str) -> None:
    name, weights = function.__name__, [torch.zeros(9, 7)] * (2 if "lstm" in function.__name__ else 1)
    with pytest.raises(TypeError, match=rf"{name}: hx must be a pair of Tensors, \(h, c\); got .*{received}"):
        function(torch.zeros(2, 4), hx, *weights)
    with pytest.raises(TypeError, match=f"{name}: input must be a Tensor; got input='list'"):
        function([1.0], (torch.zeros(2, 3), torch.zeros(2, 3)), *weights)


@pytest.mark.parametrize(
    ("hx", "received"),
    [
        (torch.zeros(1, 2, 5), r"hx \(1, 2, 5\)"),
        ((torch.zeros(1, 2, 5),), r"hx=\('Tensor',\)"),
        ((torch.zeros(1, 2, 5), 0.0), r"hx=\('Tensor', 'float'\)"),
        (0.0, "hx='float'"),
    ],
)
@pytest.mark.parametrize("layer", [nn.LSTM(3, 5), nn.LLTM(3, 5)], ids=["LSTM", "LLTM"])
def test_recurrent_layers_refuse_a_state_that_is_no_pair(layer: torch.nn.Module, hx: Any, received: str) -> None:
    expected = rf"^{type(layer).__name__}: hx must be a pair of Tensors, \(h, c\); got {received}$"
    with pytest.raises(TypeError, match=expected):
        layer(torch.zeros(7, 2, 3), hx)
