"""Removal of units from any module."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, HarAttention, HarAttentionConfig, HarLstm, HarLstmConfig, build_model
from torchcommodity.nn import LSTM
from torchcommodity.optimize import model_size, prune_units
from torchcommodity.optimize._unit_groups import find_unit_groups
from torchcommodity.training import ModelInputs


class Sequence(nn.Module):
    """A linear layer, a recurrent one, and a head that reads its last row."""

    def __init__(self, recurrent: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.first, self.recurrent, self.head = nn.Linear(3, 6), recurrent(6, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.recurrent(torch.tanh(self.first(x)))
        return self.head(output[:, -1])  # type: ignore[no-any-return]


class Branching(nn.Module):
    """Cannot be traced: its forward depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        return self.last(y if y.sum() > 0 else -y)  # type: ignore[no-any-return]


def test_prune_units_makes_any_module_smaller(network: Any) -> None:
    small = prune_units(network.module, 0.5, example=network.example)
    assert type(small) is type(network.module)
    assert model_size(small).parameters < 0.85 * model_size(network.module).parameters
    assert small(network.example).shape == network.module(network.example).shape
    network.loss(small(network.example), network.batches[0][1]).backward()


def test_prune_units_leaves_residual_sums_tied_heads_and_outputs(network: Any) -> None:
    groups, reasons = find_unit_groups(network.module, network.example)
    names = [group.name for group in groups]
    assert names in (["0", "2"], ["block.conv1", "wide.0", "head.0"], ["mlp.0"])
    words = ("is an output", "residual connection", "shares its weight", "are an output")
    assert all(any(word in reason for word in words) for reason in reasons.values())


def test_prune_units_without_outgoing_weights_does_not_change_outputs(network: Any) -> None:
    groups, _ = find_unit_groups(network.module, network.example)
    with torch.no_grad():
        for group in groups:
            for reader in group.readers:
                columns = reader.weight.shape[1] // group.count
                reader.weight[:, columns : 3 * columns] = 0  # units 1 and 2
    expected = network.module(network.example)
    amount = 2 / max(group.count for group in groups)
    small = prune_units(network.module, amount, example=network.example)
    assert any(a.shape != b.shape for a, b in zip(small.parameters(), network.module.parameters()))
    torch.testing.assert_close(small(network.example), expected)


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU, LSTM])
def test_prune_units_of_recurrent_layers(recurrent: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    model, x = Sequence(recurrent).eval(), torch.randn(2, 5, 3)
    hidden: Any = model.recurrent
    with torch.no_grad():
        model.head.weight[:, [1, 4, 5]] = 0
        hidden.weight_hh_l0[:, [1, 4, 5]] = 0
        hidden.weight_ih_l0[:, 2] = 0
    small = prune_units(model, units=5, example=x)
    assert (small.first.out_features, small.recurrent.hidden_size, small.head.in_features) == (5, 5, 5)
    torch.testing.assert_close(small(x), model(x))


@pytest.mark.parametrize("name", ["har-lstm", "har-lltm", "garch-lstm", "har-regime", "har-mlp-lstm"])
def test_prune_units_of_forecasters(name: str, forecaster: Forecaster, inputs: ModelInputs) -> None:
    har = forecaster.model.har.config
    model = build_model(MODELS[name].config(har=har), 2).eval()  # type: ignore[call-arg]
    recurrence = getattr(model, "lltm", getattr(model, "lstm", None))
    with torch.no_grad():
        nn.init.normal_(model.head.weight)
        model.head.weight[:, [0, 3]] = 0
        getattr(recurrence, "weight_hh_l0", getattr(recurrence, "weight", None))[:, [0, 3]] = 0  # type: ignore[index]
    small = prune_units(model, 0.25)
    assert small.config.hidden == 6
    build_model(small.config, 2).load_state_dict(small.state_dict())
    torch.testing.assert_close(small(*inputs.batch()), model(*inputs.batch()), equal_nan=True)


def test_prune_units_follows_a_buffer_that_is_cut_to_the_input() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("position", torch.rand(1, 50, 4))
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(x + self.position[:, : x.size(1)])

    small: Any = prune_units(Positions(), 0.5, example=torch.ones(1, 10, 4))
    assert small.layers[0].out_features == 4


def test_prune_units_zeros_rows_of_a_module_that_cannot_be_traced() -> None:
    model, x = Branching(), torch.randn(2, 3)
    with pytest.raises(ValueError, match=r'must be traceable by torch\.fx; method="zero" sets'):
        prune_units(model, 0.5, example=x)
    sparse = prune_units(model, 0.5, example=x, method="zero")
    assert (sparse.first.weight == 0).all(1).sum() == 2
    assert torch.equal(sparse.last.weight, model.last.weight)


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU, nn.RNN, LSTM])
def test_prune_units_zeros_units_of_recurrent_layers_in_every_gate(recurrent: Callable[..., nn.Module]) -> None:
    model, x = Sequence(recurrent), torch.randn(2, 5, 3)
    hidden: Any = prune_units(model, 0.25, example=x, method="zero").recurrent
    gates = hidden.weight_ih_l0.shape[0] // 8
    zero = [(w == 0).all(1).view(gates, 8) for w in (hidden.weight_ih_l0, hidden.weight_hh_l0)]
    assert torch.equal(zero[0], zero[1])
    assert zero[0].sum(1).tolist() == [2] * gates
    assert (zero[0] == zero[0][0]).all()
    assert torch.equal(hidden.bias_ih_l0, model.recurrent.bias_ih_l0)


def test_prune_units_zeros_of_stacked_layers_are_chosen_in_each() -> None:
    class Stacked(Sequence):
        def __init__(self) -> None:
            super().__init__(nn.LSTM)
            self.recurrent, self.head = nn.LSTM(6, 4, 2, bidirectional=True, batch_first=True), nn.Linear(8, 2)

    layer: Any = prune_units(Stacked(), 0.5, example=torch.ones(2, 5, 3), method="zero").recurrent
    for name in ("l0", "l0_reverse", "l1", "l1_reverse"):
        assert (getattr(layer, f"weight_ih_{name}") == 0).all(1).sum() == 8


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU])
def test_prune_units_says_that_the_last_layer_keeps_its_units(recurrent: Callable[..., nn.Module]) -> None:
    class Normalized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent, self.norm = recurrent(3, 8, batch_first=True), nn.LayerNorm(8)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(self.recurrent(x)[0])  # type: ignore[no-any-return]

    for model, last in ((recurrent(3, 8), ""), (Normalized(), "recurrent")):
        with pytest.raises(ValueError, match=rf"before the last one, which keeps its units; got last=\['{last}'\]"):
            prune_units(model, 0.5, example=torch.ones(2, 5, 3), method="zero")


def test_prune_units_of_some_layers() -> None:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2))
    x = torch.ones(1, 3)
    small: Any = prune_units(model, 0.5, layers=["2"], example=x)
    assert (small[0].out_features, small[2][0].out_features) == (8, 4)
    sparse: Any = prune_units(model, 0.5, layers=["2"], example=x, method="zero")
    assert [int((w == 0).all(1).sum()) for w in (sparse[0].weight, sparse[2][0].weight)] == [0, 4]
    for method in ("remove", "zero"):
        with pytest.raises(
            ValueError, match=r"prune_units: layers must be among 0, 1, 2, 2\.0, .*; got layers=\['5'\]"
        ):
            prune_units(model, 0.5, layers=["5"], example=x, method=method)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prune_units: layers must contain lstm, the only one with units; got layers"):
        prune_units(HarLstm(2, HarLstmConfig()), 0.5, layers=["head"])


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (nn.Linear(3, 2), {"amount": 0.5}, r"prune_units: a module needs example"),
        (nn.Sequential(nn.Linear(3, 2)), {"amount": 0.5, "example": torch.ones(1, 3)}, r"\(0: its units are an output"),
        (nn.Linear(3, 2), {}, r"prune_units: give either amount or units; got amount=None, units=None"),
        (nn.Linear(3, 2), {"amount": 1}, r"prune_units: amount must be in \[0, 1\), a share of the units; units="),
        (HarAttention(2, HarAttentionConfig()), {"amount": 0.5}, "must read one recurrent layer and nothing else"),
    ],
    ids=["no example", "no hidden layer", "no amount", "amount of one", "attention"],
)
def test_prune_units_refuses_in_words(model: nn.Module, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prune_units(model, **settings)
