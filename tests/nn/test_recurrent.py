"""nn.LSTM against torch's own, the LLTM layers against a plain loop; what a missing row does; how they leave Python."""

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from torchcommodity import nn, ops

SHAPES = [
    {},
    {"num_layers": 2},
    {"bidirectional": True},
    {"num_layers": 3, "bidirectional": True, "bias": False},
    {"batch_first": True, "num_layers": 2},
]


def seeded(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def twins(**settings: object) -> tuple[nn.LSTM, torch.nn.LSTM]:
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(3, 5, dtype=torch.double, **settings)  # type: ignore[arg-type]
    ours = nn.LSTM(3, 5, dtype=torch.double, **settings)  # type: ignore[arg-type]
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def gradients(layer: torch.nn.Module, x: Tensor, hx: tuple[Tensor, Tensor] | None) -> list[Tensor]:
    leaves = [x.clone().requires_grad_(), *layer.parameters()]
    output, (h, c) = layer(leaves[0], hx)
    loss = output.sin().sum() + h.square().sum() + c.cos().sum()
    return list(torch.autograd.grad(loss, leaves))


@pytest.mark.parametrize("settings", SHAPES, ids=str)
@pytest.mark.parametrize("given", [True, False], ids=["state", "zeros"])
def test_lstm_has_the_numbers_of_torch(settings: dict[str, object], given: bool) -> None:
    ours, theirs = twins(**settings)
    x, layers = seeded(4, 7, 3), ours.num_layers * ours.directions
    batch = 4 if ours.batch_first else 7
    hx = (seeded(layers, batch, 5), seeded(layers, batch, 5) / 2) if given else None
    torch.testing.assert_close(ours(x, hx), theirs(x, hx), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradients(ours, x, hx), gradients(theirs, x, hx), rtol=1e-9, atol=1e-11)


def test_lstm_without_a_batch() -> None:
    ours, theirs = twins(num_layers=2)
    x, hx = seeded(7, 3), (seeded(2, 5), seeded(2, 5))
    torch.testing.assert_close(ours(x, hx), theirs(x, hx), rtol=1e-10, atol=1e-12)


def test_the_state_goes_to_torch_and_back() -> None:
    ours, theirs = twins(num_layers=2, bidirectional=True)
    torch.nn.init.ones_(ours.weight_hh_l1_reverse)  # type: ignore[arg-type]
    theirs.load_state_dict(ours.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert theirs.weight_hh_l1_reverse.eq(1).all()


def test_lstm_drops_between_layers_in_training_only() -> None:
    ours, theirs = twins(num_layers=2, dropout=0.5)
    x = seeded(4, 2, 3)
    assert not ours(x)[0].equal(ours(x)[0])
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_with_nan_is_packing(bidirectional: bool) -> None:
    ours, theirs = twins(num_layers=2, batch_first=True, bidirectional=bidirectional)
    x, lengths = seeded(3, 7, 3), torch.tensor([7, 4, 2])
    padded = x.masked_fill((torch.arange(7) >= lengths[:, None])[..., None], torch.nan)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    output, state = ours(padded)
    expected, final = theirs(packed)
    expected = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)[0]
    torch.testing.assert_close(state, final, rtol=1e-10, atol=1e-12)
    for row, wanted, length in zip(output, expected, lengths):
        torch.testing.assert_close(row[:length], wanted[:length], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 5, batch_first=True), nn.LLTM(3, 5, batch_first=True)], ids=str)
def test_a_missing_row_is_as_if_it_were_not_there(layer: torch.nn.Module) -> None:
    layer = layer.double()
    x = seeded(2, 7, 3)
    holed = x.clone()
    holed[:, 4, 1] = torch.nan
    output, state = layer(holed)
    without, final = layer(torch.cat([x[:, :4], x[:, 5:]], 1))
    torch.testing.assert_close(torch.cat([output[:, :4], output[:, 5:]], 1), without)
    torch.testing.assert_close(state, final)
    assert output[:, 4].equal(output[:, 3])


def test_lltm_is_a_loop_over_its_cell() -> None:
    layer, cell = nn.LLTM(3, 5, dtype=torch.double), nn.LLTMCell(3, 5, dtype=torch.double)
    cell.load_state_dict(layer.state_dict())
    x, state = seeded(7, 2, 3), None
    x[3, 1, 0] = torch.nan
    rows = []
    for row in x:
        state = cell(row, state)
        rows.append(state[0])
    output, (h, c) = layer(x)
    torch.testing.assert_close(output, torch.stack(rows))
    torch.testing.assert_close((h[0], c[0]), state)


def test_no_rows_leave_the_state() -> None:
    for layer in (nn.LSTM(3, 5), nn.LLTM(3, 5)):
        state = (torch.rand(1, 2, 5), torch.rand(1, 2, 5))
        output, after = layer(torch.empty(0, 2, 3), state)
        assert output.shape == (0, 2, 5)
        torch.testing.assert_close(after, state)


def test_autocast_keeps_single_precision() -> None:
    layer, x = nn.LSTM(3, 5, num_layers=2), torch.randn(7, 2, 3)
    expected = layer(x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer(x)[0], expected)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 5, 2, batch_first=True), nn.LLTM(3, 5, batch_first=True)], ids=str)
def test_export_with_any_batch_and_any_time(layer: torch.nn.Module) -> None:
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    program = torch.export.export(layer, (torch.randn(2, 7, 3),), dynamic_shapes=shapes)
    for shape in ((2, 7, 3), (5, 31, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(program.module()(x), layer(x))


@pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn of themselves
def test_compile_takes_the_layer_whole() -> None:
    torch._dynamo.reset()
    layer = nn.LSTM(3, 5, num_layers=2, bidirectional=True)
    x = torch.randn(7, 2, 3)
    compiled = torch.compile(lambda x: layer(x)[0].square().sum(), fullgraph=True)
    expected = torch.autograd.grad(layer(x)[0].square().sum(), list(layer.parameters()))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), list(layer.parameters())), expected)


def test_the_layers_print_as_torch_does() -> None:
    settings = {"num_layers": 2, "bias": False, "batch_first": True, "dropout": 0.1, "bidirectional": True}
    assert repr(nn.LSTM(3, 5, **settings)) == repr(torch.nn.LSTM(3, 5, **settings))  # type: ignore[arg-type]
    assert repr(nn.LLTM(3, 5, bias=False)) == "LLTM(3, 5, bias=False)"
    assert repr(nn.LLTMCell(3, 5)) == "LLTMCell(3, 5)"


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"LSTM: proj_size must be 0: .*; got proj_size=2"):
        nn.LSTM(3, 5, proj_size=2)
    with pytest.raises(ValueError, match=r"LSTM: dropout must be in \[0, 1\]"):
        nn.LSTM(3, 5, dropout=2.0)
    with pytest.raises(ValueError, match="LLTM: hidden_size must be >= 1"):
        nn.LLTM(3, 0)
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(4, 3)])
    with pytest.raises(TypeError, match="LSTM: a packed sequence is not taken: pad with NaN"):
        nn.LSTM(3, 5)(packed)
    with pytest.raises(ValueError, match=r"LSTM: input must be .* with F = 3; got input \(7, 2, 4\)"):
        nn.LSTM(3, 5)(torch.ones(7, 2, 4))
    with pytest.raises(ValueError, match=r"LSTM: h must be \(1, 2, 5\); got h \(1, 3, 5\)"):
        nn.LSTM(3, 5)(torch.ones(7, 2, 3), (torch.ones(1, 3, 5), torch.ones(1, 2, 5)))


def test_third_derivatives_of_a_recurrence() -> None:
    """The adjoint's own formula differentiates its definition, so orders go on."""
    x, h, c, w, b = seeded(1, 2, 2), seeded(1, 2), seeded(1, 2) / 2, seeded(6, 4) / 2, seeded(6)

    def value(scale: Tensor) -> Tensor:
        return ops.lltm(scale * x, (h, c), w, b)[0].sum()

    one = torch.ones((), dtype=torch.double)
    third = torch.func.grad(torch.func.grad(torch.func.grad(value)))(one)
    step = 1e-4
    second = torch.func.grad(torch.func.grad(value))
    torch.testing.assert_close(third, (second(one + step) - second(one - step)) / (2 * step), rtol=1e-6, atol=1e-8)
