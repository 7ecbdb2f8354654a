"""examples: each script passes the contract, and each does what its docstring says."""

import doctest
import functools
import importlib.util
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import torch_opkit as opkit
from torch_opkit._build import compiler

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@functools.cache
def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_example_passes_the_contract(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(opkit, "check", functools.partial(opkit.check, compiled=False))
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    table = capsys.readouterr().out
    assert not exit_.value.code, table
    assert re.match(r"examples::\w+: \d\d pass, 0 fail", table)


@pytest.mark.parametrize("name", NAMES)
def test_example_doctests_pass(name: str) -> None:
    module: ModuleType = example(name)
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
    public = [value for key, value in vars(module).items() if key[0] != "_" and _is_defined_in(value, module)]
    assert public
    assert all(">>> " in (value.__doc__ or "") for value in public)


def _is_defined_in(value: object, module: ModuleType) -> bool:
    return isinstance(value, type | Callable) and getattr(value, "__module__", "") == module.__name__


def test_examples_readme_lists_every_operator() -> None:
    listed = re.findall(r"^\| \[`(\w+)\.py`\]\(\1\.py\) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == NAMES


class AllExamples(nn.Module):
    """All examples in one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.examples = {name: example(name) for name in NAMES}
        self.layer = example("linear").Linear(3, 4)
        self.weight = nn.Parameter(torch.randn(5, 6, 2) / 3)
        self.gamma, self.beta = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:  # (2, 6, 3)
        ops = self.examples
        product, _ = ops["multiply"].multiply(ops["cube"].cube(ops["square"].square(x)), 0.5)
        y = ops["cuda_kernel"].swish(self.layer(product))
        y, *_ = ops["batch_norm"].batch_norm(y.flatten(0, 1), self.gamma, self.beta)
        mean = ops["running_mean"].running_mean_(y.detach().clone(), y)
        y = y + mean
        z: Tensor = ops["convolution"].convolution(y.view(2, 6, 4), self.weight)
        return z.square().mean()


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # from Inductor
def test_examples_compile_in_one_graph() -> None:
    torch.manual_seed(0)
    model, x = AllExamples().double(), torch.randn(2, 6, 3, dtype=torch.double)
    results = [_value_and_gradients(run, model, x) for run in (model, torch.compile(model, fullgraph=True))]
    torch.testing.assert_close(*results)


def _value_and_gradients(run: Callable[[Tensor], Tensor], model: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    value = run(x)
    return value, *torch.autograd.grad(value, list(model.parameters()))


def saved_bytes(function: Callable[[Tensor], object], x: Tensor) -> int:
    saved: list[Tensor] = []

    def pack(t: Tensor) -> Tensor:
        saved.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        function(x.requires_grad_())
    return sum(t.numel() * t.element_size() for t in saved)


def test_square_saves_only_its_argument() -> None:
    assert saved_bytes(example("square").square, torch.rand(10, 10)) == 400
    assert saved_bytes(example("cuda_kernel").swish, torch.rand(10, 10)) == 800  # also the output, for its NaN mask


class CalledOperators(TorchDispatchMode):
    """Names of the operators that are called in the block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_multiply_skips_the_gradient_of_an_unused_output() -> None:
    multiply = example("multiply")
    for function in (multiply.multiply, multiply.Multiply.apply):
        x = torch.ones(2, 2, requires_grad=True)
        product, _ = function(x, 3.0)
        with CalledOperators() as called:
            (gradient,) = torch.autograd.grad(product, x, torch.ones(2, 2))
        assert gradient.equal(torch.full((2, 2), 3.0))
        assert [name for name in called.names if name in {"zeros", "mul", "div", "add"}] == ["mul"]


def test_cube_with_a_constant_slope_fails_gradgradcheck() -> None:
    x = torch.randn(2, 7, 3, dtype=torch.double)
    report = opkit.check(example("cube").ConstantSlope, samples=[opkit.Sample(x)], only=["gradcheck", "gradgradcheck"])
    assert [result.name for result in report.failures] == ["gradgradcheck"]
    assert report["gradcheck"].status == "pass"


@pytest.mark.parametrize(("inputs", "products"), [("x", 1), ("weight", 1), ("bias", 0), ("x weight bias", 2)])
def test_linear_computes_only_the_gradients_that_are_needed(inputs: str, products: int) -> None:
    tensors = {"x": torch.rand(2, 7, 3), "weight": torch.rand(4, 3), "bias": torch.rand(4)}
    leaves = [tensors[name].requires_grad_() for name in inputs.split()]
    y = example("linear").linear(*tensors.values())
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(y.sum(), leaves)
    assert counter.get_total_flops() == products * 2 * 14 * 3 * 4


def test_linear_layer_equals_torch_nn_linear() -> None:
    layer, expected = example("linear").Linear(3, 4), nn.Linear(3, 4)
    expected.load_state_dict(layer.state_dict())
    x = torch.rand(2, 7, 3)
    torch.testing.assert_close(layer(x), expected(x))
    assert repr(layer) == repr(expected)
    assert max(parameter.abs().max() for parameter in layer.parameters()) < 3**-0.5


@pytest.mark.slow
@pytest.mark.compile
def test_cuda_kernel_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        compiler.nvcc()
    except opkit.BuildError:
        pytest.skip("no nvcc: the CUDA kernel was not compiled")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    if torch.version.cuda:
        assert _load_with_cuda().swish(torch.zeros(3)).equal(torch.zeros(3))
    else:
        with pytest.raises(OSError, match="it was built for CUDA, this torch was not"):
            _load_with_cuda()


def _load_with_cuda() -> SimpleNamespace:
    sources = example("cuda_kernel").CPP, example("cuda_kernel").CUDA
    return opkit.load_inline("examples_cuda", *sources, functions=["swish"], extra_cflags=["-DWITH_CUDA"])
