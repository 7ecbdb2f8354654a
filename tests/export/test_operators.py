"""The operators that a pt2 file may name are those of the graphs of all models and of usual layers, and no others."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import pytest
import torch

from torchcommodity import data, forecast, optimize
from torchcommodity.data import Panel
from torchcommodity.export import RawPriceForecaster, make_metadata
from torchcommodity.export._export_program import trace
from torchcommodity.export._graph_allowlist import NETWORKS, OPERATORS, SIZES, replace_in_place
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, HarConfig, default_config
from torchcommodity.training import FitConfig, TrainConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=70)


def panels() -> Iterator[Panel]:
    """A future and a spot price with a reference; one spot price; spot prices with a curve; prices with bars."""
    from arch.data import sp500

    oil = data.embedded(["WTI", "BRENT", "GASOLINE_NYH"]).between("2012-01-01", "2015-12-31")
    yield oil.with_references(["GASOLINE_NYH"]).with_contracts({"WTI": "CL"})
    yield oil.select(["BRENT"])
    pair = oil.select(["WTI", "BRENT"])
    front = pair.values.plain().nan_to_num(50.0)
    yield pair.with_curve(front[..., None] * torch.linspace(1.0, 1.1, 5, dtype=torch.double), {"WTI": "CL"})
    yield data.to_panel(pd.concat({"SP500": sp500.load()["2009":"2013"]}, names=["symbol"]).reset_index())


def fit_all() -> Iterator[Forecaster]:
    for panel in panels():
        for name in MODELS if panel.symbols == ("WTI", "BRENT") and panel.references is not None else ["har-garch"]:
            config = FitConfig(replace(default_config(name), har=CONFIG), TrainConfig(epochs=0))
            fitted = forecast.fit(panel, config)
            if hasattr(fitted.model, "head"):
                torch.nn.init.normal_(fitted.model.head.weight, generator=torch.Generator().manual_seed(0))
                fitted.model.har.shrink.fill_(0.5)
            yield fitted
            if name == "har-orthogonal-lstm":
                yield optimize.quantize(fitted)


@pytest.mark.slow
@pytest.mark.export
def test_operators_are_those_of_all_models() -> None:
    names = set()
    for forecaster in fit_all():
        program = replace_in_place(trace(RawPriceForecaster(forecaster), make_metadata(forecaster, "pt2").min_rows))
        for node in program.graph.nodes:
            if node.op == "call_function":
                is_operator = isinstance(node.target, torch._ops.OpOverload)
                names.add(f"torch.ops.{node.target}" if is_operator else f"_operator.{node.target.__name__}")
    names -= {"_operator.getitem"}  # of a list of tensors: no node of the file
    names |= {*SIZES}  # arithmetic of sizes is that of any network
    assert sorted(names) == sorted(OPERATORS - {f"torch.ops.aten.{name}" for name in NETWORKS})


def test_operators_of_other_networks_write_to_no_tensor() -> None:
    for name in NETWORKS:
        packet, _, overload = name.partition(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
        assert not schema.is_mutable, name
