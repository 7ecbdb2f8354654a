"""Run a module and its compiled form on the same batches, and compare values and times."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from torchcommodity.optimize._batches import split_inputs
from torchcommodity.optimize._compile.dynamo import CompileLog, compile_limit, describe_error
from torchcommodity.optimize._compile.result import OutputDifference, Recompilation
from torchcommodity.optimize._module import Loss, call, call_loss, call_model, describe
from torchcommodity.optimize._speedup import Times, time_interleaved
from torchcommodity.optimize._steps import copy_batch, device_of, named_tensors, versions

RANDOM = 1e-3  # relative difference of two eager runs; rounding that depends on threads is smaller
TIMED = "the timed calls"
Outputs = Mapping[str, Tensor]


class Comparison:
    """A module and its compiled form; a call of either has a backward pass if there is a loss."""

    def __init__(self, module: nn.Module, loss_fn: Loss | None) -> None:
        self.module, self.loss_fn = module, loss_fn
        self.compiled: Any = module
        self.cuda, self.writes, self.random = device_of(module).type == "cuda", False, False
        self.log, self.seconds = CompileLog(), 0.0
        self.rows: dict[str, OutputDifference] = {}
        self.recompilations: list[Recompilation] = []
        self.examples: dict[str, object] = {}  # the first batch of each shape

    def examine(self, batch: object) -> None:
        """Run the eager model twice: does it write into its batch, is it random or stateful?"""
        trial = copy_batch(batch)
        before = versions(trial)
        first = self._values(self._eager, trial, seed=0)
        self.writes = versions(trial) != before
        second = self._values(self._eager, batch, seed=1)
        self.random = any(row.relative > RANDOM for row in differences(first, second))

    def compile(self, **settings: Any) -> None:
        """Call torch.compile; the code is compiled when the model is called."""
        try:
            self.compiled = torch.compile(self.module, **settings)
        except RuntimeError as error:  # it checks the names and types of options
            raise ValueError(f"compile: options must be settings of the backend; got {error}") from None

    def compare(self, batch: object) -> None:
        """Run both on a batch."""
        shapes, first = describe(batch), not self.examples
        expected = self._values(self._eager, batch)
        start = time.perf_counter()
        actual = self._values(self._compiled, batch)
        if shapes not in self.examples:
            self.seconds += time.perf_counter() - start
            self.examples[shapes] = batch
        for row in () if self.random else differences(expected, actual):
            known = self.rows.get(row.name, row)
            self.rows[row.name] = max(known, row, key=lambda row: row.absolute)
        recompilations = self.log.recompilations(shapes)
        self.recompilations += [] if first else recompilations

    def time(self, rounds: int) -> dict[str, Times]:
        """Time both in interleaved rounds over the distinct batches."""
        times = time_interleaved({"eager": self._round(self._eager), "compiled": self._round(self._compiled)}, rounds)
        self.recompilations += self.log.recompilations(TIMED)
        return times

    def notes(self) -> list[str]:
        """What limits the comparison."""
        notes = []
        if not self.log.compilations:
            notes.append("nothing was compiled: the model runs no operator that can be")
        if self.writes:
            notes.append("the model writes into its batch, so that every call had a copy of it; clone it in forward")
        if self.random:
            notes.append(
                "outputs are random or change from call to call (compiled code has other random numbers): not compared"
            )
        if len(self.recompilations) >= compile_limit() - 1:
            limit = f"torch._dynamo.config.recompile_limit = {compile_limit()}"
            notes.append(f"{limit} may be reached, from where on the model runs eagerly: pass dynamic=True")
        return notes

    def _round(self, model: Callable[[object], object]) -> Callable[[], None]:
        def call_all() -> None:
            for batch in self.examples.values():
                self._call(model, batch)
            if self.cuda:
                torch.cuda.synchronize()

        return call_all

    def _values(self, model: Callable[[object], object], batch: object, seed: int = 0) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return copy_outputs(self._call(model, batch))

    def _call(self, model: Callable[[object], object], batch: object) -> object:
        """Output; with a loss also the loss and the gradients."""
        inputs, target = split_inputs(self.module, copy_batch(batch) if self.writes else batch, self.loss_fn)
        if self.loss_fn is None:
            with torch.no_grad():
                return model(inputs)
        self.module.zero_grad()
        output = model(inputs)
        loss = call_loss(self.loss_fn, output, target)
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in self.module.named_parameters()}
        return {"output": output, "loss": loss, "gradient": gradients}

    def _eager(self, inputs: object) -> object:
        return call_model(self.module, inputs)

    def _compiled(self, inputs: object) -> object:
        if self.cuda:
            torch.compiler.cudagraph_mark_step_begin()
        try:
            return call(self.compiled, inputs)
        except Exception as error:
            name = type(self.module).__name__
            raise RuntimeError(f"compile: {name} cannot be compiled: {describe_error(error)}") from None


def copy_outputs(outputs: object) -> dict[str, Tensor]:
    """Copies of the tensors in outputs by name; the next run of a CUDA graph overwrites the tensors themselves."""
    copies = {}
    for name, x in named_tensors(outputs):
        x = torch.cat([part.flatten() for part in x.unbind()]) if x.is_nested else x
        copies[name or "output"] = x.detach().clone()
    return copies


def differences(expected: Outputs, actual: Outputs) -> tuple[OutputDifference, ...]:
    """Absolute and relative difference of every output, largest first."""
    rows = [_difference(name, x, actual.get(name)) for name, x in expected.items()]
    return tuple(sorted(rows, key=lambda row: -row.absolute))


def _difference(name: str, expected: Tensor, actual: Tensor | None) -> OutputDifference:
    infinite = OutputDifference(name, float("inf"), float("inf"))
    if actual is None or actual.shape != expected.shape or actual.dtype != expected.dtype:
        return infinite
    x, y = (_to_double(value) for value in (expected, actual))
    special = ~torch.isfinite(x)
    if not torch.equal(special, ~torch.isfinite(y)) or not torch.equal(_text(x[special]), _text(y[special])):
        return infinite
    absolute = float((x - y)[~special].abs().max()) if (~special).any() else 0.0
    scale = float(x[~special].abs().max()) if (~special).any() else 0.0
    return OutputDifference(name, absolute, absolute / scale if scale else absolute)


def _to_double(x: Tensor) -> Tensor:
    x = (x.to_dense() if x.layout != torch.strided else x).cpu()  # not every device has float64
    return torch.view_as_real(x.to(torch.complex128)) if x.is_complex() else x.double()


def _text(x: Tensor) -> Tensor:
    """NaN, inf and -inf as numbers that compare equal to themselves."""
    return torch.nan_to_num(x, nan=2.0, posinf=1.0, neginf=-1.0)
