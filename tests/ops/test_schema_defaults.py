"""The defaults of an operator's schema are those of its public function: `torch.ops.commodity.rolling_mean(x, 21)`."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._decomp import decomposition_table

import torch_opkit as opkit
from torch_opkit import Op, Sample
from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators


def names(op: Op, required: bool = False) -> list[str]:
    arguments = op.overload._schema.arguments
    return [argument.name for argument in arguments if not (required and argument.has_default_value())]


LAYERS = {"lltm", "lstm"}  # their public functions, of which they have samples, take other weights
OPERATORS = {
    name: op
    for name, op in opkit.OPERATORS.items()
    if name.startswith("commodity::") and names(op, True) != names(op) and op.name not in LAYERS
}


COMPUTED = {  # by the public function, from the other arguments
    "conv_bn": {"bias", "gamma", "beta", "stride", "padding", "dilation", "groups", "eps"},  # sizes for each axis
    "dcc_correlation": {"initial"},
    "egarch_variance": {"gamma", "initial"},
    "ewm_mean": {"alpha"},  # from com, span or halflife
    "garch_variance": {"gamma", "initial"},
    "hamilton_filter": {"initial"},
    "lltm": {"bias"},  # with the two parts of its weight
}


def test_schema_defaults_are_missing_only_where_the_public_function_computes_the_argument() -> None:
    missing = {}
    for name in {op.name for op in opkit.OPERATORS.values()} & {*ops.__all__}:
        parameters = inspect.signature(getattr(ops, name)).parameters
        required = names(opkit.OPERATORS[f"commodity::{name}"], required=True)
        missing[name] = {
            x for x in required if x in parameters and parameters[x].default is not inspect.Parameter.empty
        }
    assert {name: arguments for name, arguments in missing.items() if arguments} == COMPUTED


def bare_call(op: Op, samples: tuple[Sample, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The required arguments of the operator, and what the function needs beside them, such as `packed`."""
    for sample in sorted(samples, key=lambda sample: len(sample.tensors)):
        values = dict(zip(names(op), sample.tensors)) | sample.settings
        if values.keys() >= {*names(op, required=True)}:
            others = {name: value for name, value in values.items() if name not in names(op)}
            return {name: values[name] for name in names(op, required=True)}, others
    raise AssertionError(f"{op.name}: a sample must have the required arguments {names(op, required=True)}")


def test_schema_defaults_of_the_operators_of_the_tutorials() -> None:
    tutorials = {"seasonal_decompose", "technical_indicators", "rolling_correlation", "correlation_regime", "lltm_cell"}
    assert tutorials <= {op.name for op in OPERATORS.values()}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_schema_defaults_are_those_of_the_public_function(name: str) -> None:
    op = OPERATORS[name]
    assert op.cases is not None
    cases = op.cases()
    arguments, others = bare_call(op, cases.samples)
    expected, actual = cases.function(**arguments, **others), op.overload(**arguments)
    expected = (expected,) if isinstance(expected, Tensor) else tuple(expected)
    actual = (actual,) if isinstance(actual, Tensor) else actual[: len(expected)]
    torch.testing.assert_close(actual, expected[: len(actual)], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_schema_defaults_are_those_of_the_reference(name: str) -> None:
    op = OPERATORS[name]
    assert op.cases is not None
    arguments, _ = bare_call(op, op.cases().samples)
    torch.testing.assert_close(op.overload(**arguments), op.reference(**arguments), equal_nan=True)


@pytest.mark.parametrize(
    "name", ["rolling_mean", "rolling_var", "rolling_skew_kurt", "rolling_quantile", "rolling_correlation"]
)
def test_schema_defaults_without_min_periods_have_the_gradient_of_the_whole_window(name: str) -> None:
    x = torch.randn(6, 2, dtype=torch.double, requires_grad=True)
    settings = (4, 0.3) if name == "rolling_quantile" else (4,)

    def gradient(*min_periods: int) -> Tensor:
        y = OPERATORS[f"commodity::{name}"].overload(x, *settings, *min_periods)
        return torch.autograd.grad((y[0] if isinstance(y, tuple) else y).nansum(), x)[0]

    bare, resolved = gradient(), gradient(4)
    assert bare.any()
    assert torch.equal(bare, resolved)


@pytest.mark.parametrize("name", ["correlation_regime", "seasonal_decompose"])
def test_schema_defaults_left_out_of_a_graph_reach_the_decomposition(name: str) -> None:
    overload = getattr(torch.ops.commodity, name).default
    x = torch.randn(60, 3, 3).double() if name == "correlation_regime" else torch.rand(60, 3).double() + 1
    args = (x,) if name == "correlation_regime" else (x, 12)
    for result, expected in zip(decomposition_table[overload](*args), overload(*args)):
        torch.testing.assert_close(result, expected, equal_nan=True)
