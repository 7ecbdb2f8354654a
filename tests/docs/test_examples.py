"""The worked examples: each is a script that proves its contract, and shows what its first lines say."""

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

from torchcommodity import opkit
from torchcommodity.opkit._build import compiler
from torchcommodity.opkit._build.flags import gencode

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in (EXAMPLES / "operators").glob("*.py"))


@functools.cache
def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / "operators" / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_script_proves_its_contract(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(opkit, "check", functools.partial(opkit.check, compiled=False))
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(EXAMPLES / "operators" / f"{name}.py"), run_name="__main__")
    table = capsys.readouterr().out
    assert not end.value.code, table
    assert re.match(r"examples::\w+: \d\d pass, 0 fail", table)


@pytest.mark.parametrize("name", NAMES)
def test_its_functions_do_what_they_show(name: str) -> None:
    module: ModuleType = example(name)
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
    public = [thing for key, thing in vars(module).items() if key[0] != "_" and _made_in(thing, module)]
    assert public
    assert all(">>> " in (thing.__doc__ or "") for thing in public)


def _made_in(thing: object, module: ModuleType) -> bool:
    return isinstance(thing, type | Callable) and getattr(thing, "__module__", "") == module.__name__


def test_every_example_has_a_line_in_the_readme() -> None:
    listed = re.findall(
        r"^\| \[`(\w+)\.py`\]\(operators/\1\.py\) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == NAMES


class All(nn.Module):
    """Every example in one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.examples = {name: example(name) for name in NAMES}
        self.layer = example("linear").Linear(3, 4)
        self.weight = nn.Parameter(torch.randn(5, 6, 2) / 3)
        self.gamma, self.beta = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:  # (2, 6, 3)
        use = self.examples
        product, _ = use["multiply"].multiply(use["cube"].cube(use["square"].square(x)), 0.5)
        y = use["cuda_kernel"].swish(self.layer(product))
        y, *_ = use["batch_norm"].batch_norm(y.flatten(0, 1), self.gamma, self.beta)
        z: Tensor = use["convolution"].convolution(y.view(2, 6, 4), self.weight)
        return z.square().mean()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # Inductor's own
def test_all_of_them_compile_in_one_graph() -> None:
    torch.manual_seed(0)
    model, x = All().double(), torch.randn(2, 6, 3, dtype=torch.double)
    results = [_value_and_gradients(run, model, x) for run in (model, torch.compile(model, fullgraph=True))]
    torch.testing.assert_close(*results)


def _value_and_gradients(run: Callable[[Tensor], Tensor], model: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    value = run(x)
    return value, *torch.autograd.grad(value, list(model.parameters()))


def saved_bytes(function: Callable[[Tensor], object], x: Tensor) -> int:
    kept: list[Tensor] = []

    def pack(t: Tensor) -> Tensor:
        kept.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        function(x.requires_grad_())
    return sum(t.numel() * t.element_size() for t in kept)


def test_square_keeps_its_argument_alone() -> None:
    assert saved_bytes(example("square").square, torch.rand(10, 10)) == 400
    assert (
        saved_bytes(example("cuda_kernel").swish, torch.rand(10, 10)) == 800
    )  # the output too, to see where it is NaN


class Called(TorchDispatchMode):
    """The operators that were called while it was open."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(called.overloadpacket.__name__)
        return called(*args, **(kwargs or {}))


def test_multiply_does_nothing_for_an_output_that_nobody_uses() -> None:
    multiply = example("multiply")
    for function in (multiply.multiply, multiply.Multiply.apply):
        x = torch.ones(2, 2, requires_grad=True)
        product, _ = function(x, 3.0)
        with Called() as called:
            (gradient,) = torch.autograd.grad(product, x, torch.ones(2, 2))
        assert gradient.equal(torch.full((2, 2), 3.0))
        assert [name for name in called.names if name in {"zeros", "mul", "div", "add"}] == ["mul"]


def test_cube_forgets_and_the_contract_finds_it() -> None:
    x = torch.randn(2, 7, 3, dtype=torch.double)
    report = opkit.check(example("cube").Forgetful, cases=[opkit.Sample(x)], only=["gradcheck", "gradgradcheck"])
    assert [result.name for result in report.failures] == ["gradgradcheck"]
    assert report["gradcheck"].status == "pass"


@pytest.mark.parametrize(("asked", "products"), [("x", 1), ("weight", 1), ("bias", 0), ("x weight bias", 2)])
def test_linear_computes_only_the_gradients_asked_for(asked: str, products: int) -> None:
    given = {"x": torch.rand(2, 7, 3), "weight": torch.rand(4, 3), "bias": torch.rand(4)}
    wanted = [given[name].requires_grad_() for name in asked.split()]
    y = example("linear").linear(*given.values())
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(y.sum(), wanted)
    assert counter.get_total_flops() == products * 2 * 14 * 3 * 4


def test_linear_as_a_layer_is_torchs() -> None:
    ours, torchs = example("linear").Linear(3, 4), nn.Linear(3, 4)
    torchs.load_state_dict(ours.state_dict())
    x = torch.rand(2, 7, 3)
    torch.testing.assert_close(ours(x), torchs(x))
    assert repr(ours) == repr(torchs)
    assert max(parameter.abs().max() for parameter in ours.parameters()) < 3**-0.5


def test_the_cuda_kernel_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        compiler.nvcc()
    except opkit.BuildError:
        pytest.skip("no nvcc: the CUDA kernel was not compiled")
    monkeypatch.setattr(compiler, "gencode", functools.partial(gencode, ["9.0"]))
    if torch.version.cuda:
        assert _with_cuda().swish(torch.zeros(3)).equal(torch.zeros(3))
    else:
        with pytest.raises(OSError, match="it was built for CUDA, this torch was not"):
            _with_cuda()


def _with_cuda() -> SimpleNamespace:
    texts = example("cuda_kernel").CPP, example("cuda_kernel").CUDA
    return opkit.load_inline("examples_cuda", *texts, functions=["swish"], flags=["-DWITH_CUDA"])
