"""Every native operator on large inputs: values and gradients against the CPU kernels, and the limits of a launch.

The sizes are those of the forecaster: 32 and 2 sequences, 1000 and 252 rows, 10 symbols. One row, 70,000 columns (more
than a grid has blocks in y), inputs that are not contiguous, and more than 2^31 elements follow. `shapes.py NAME`: one
operator.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from gpu import DEVICE, Table, exit_without_gpu, run_each, synchronize
from operators import cases_of, gradients, is_linear, native_operators, on_gpu, resized, shape_of
from torch import Tensor

from torch_opkit import Op
from torch_opkit._contract.case import Case
from torch_opkit._contract.compare import assert_bitwise_equal, assert_close
from torchcommodity import ops

SIZES = [(32, 1000, 10), (2, 252, 10), (3, 1, 10), (1, 30, 70_000)]
# of each element and the median size: the CPU kernels are themselves compared with the references by the contract
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5}
GRADIENT_TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-3}
LARGE_COLUMNS = 1_100_000  # times 2000 rows: 2.2e9 elements, beyond 32-bit indices
LARGE_BYTES = 48 * 2**30  # rolling_extrema writes a value and an int64 lag per element


def compare(case: Case, dtype: torch.dtype) -> str:
    """Values, and gradients if the operator has any, on the device against the CPU."""
    copy = on_gpu(case)
    actual, expected = copy.call(), case.call()
    assert all(y.device.type == DEVICE.type for y in actual), f"the outputs are on {[str(y.device) for y in actual]}"
    assert_close([y.cpu() for y in actual], expected, TOLERANCE[dtype], "values")
    expected_gradients = gradients(case)
    assert_close([g.cpu() for g in gradients(copy)], expected_gradients, GRADIENT_TOLERANCE[dtype], "gradients")
    return "pass" if expected_gradients else "pass, no gradient"


def strided(x: Tensor) -> Tensor:
    """The same values with gaps between them."""
    return torch.stack([x, torch.zeros_like(x)], -1)[..., 0]


def compare_strided(case: Case) -> None:
    copy = on_gpu(case)
    tolerance = TOLERANCE[torch.float64]  # not bitwise: a matrix product may take another path
    assert_close(copy.map_tensors(strided).call(), copy.call(), tolerance, "inputs with strides")


def operator_rows(op: Op, table: Table) -> None:
    seen, sample = set(), cases_of(op)[0]
    for dtype in (torch.float64, torch.float32):
        for size in SIZES if is_linear(sample) else SIZES[:-1]:
            case = resized(sample, *size, dtype)
            if (label := (shape_of(case), dtype)) not in seen:
                seen.add(label)
                cells = f"`{op.name}`", label[0], str(dtype).removeprefix("torch.")
                table.check(*cells, call=lambda case=case, dtype=dtype: compare(case, dtype))
    case = resized(sample, *SIZES[1], torch.float64)
    table.check(f"`{op.name}`", "with strides", "float64", call=lambda: compare_strided(case))


def large_calls() -> Iterator[tuple[str, Callable[[Tensor], Any]]]:
    """Functions of one panel whose columns do not depend on one another."""
    yield "rolling_mean", lambda x: ops.rolling_mean(x, 20)
    yield "rolling_var", lambda x: ops.rolling_var(x, 20)
    yield "rolling_extrema", lambda x: ops.rolling_extrema(x, 20)[0]
    yield "ewm_mean", lambda x: ops.ewm_mean(x, span=20)
    yield "garch_variance", lambda x: ops.garch_variance(x - 1.5, omega=1e-6, alpha=0.08, beta=0.9)
    yield "linear_recurrence", lambda x: ops.linear_recurrence(x / 4, x)


def compare_large(function: Callable[[Tensor], Any]) -> str:
    free = torch.cuda.mem_get_info()[0]
    if free < LARGE_BYTES:
        return f"skipped: needs {LARGE_BYTES / 2**30:.0f} GiB of free memory; got {free / 2**30:.0f}"
    x = 1 + torch.rand(2000, LARGE_COLUMNS, device=DEVICE)
    y = function(x)
    for columns in (slice(0, 3), slice(LARGE_COLUMNS - 3, None)):
        assert_bitwise_equal([y[:, columns]], [function(x[:, columns])], f"columns {columns}")
    synchronize()
    return "pass"


def large_rows(table: Table) -> None:
    for name, function in large_calls():
        shape = f"(2000, {LARGE_COLUMNS})"
        table.check(f"`{name}`", shape, "float32", call=lambda function=function: compare_large(function))
        torch.cuda.empty_cache()


def main() -> None:
    exit_without_gpu()
    torch.manual_seed(0)
    table, operators = Table("shapes", "operator", "shape", "dtype", "result"), native_operators()
    if sys.argv[1:] == ["large"]:
        large_rows(table)
    elif len(sys.argv) == 2:
        operator_rows(next(op for op in operators if op.name == sys.argv[1]), table)
    else:
        if DEVICE.type == "cuda":
            run_each(__file__, ["large"], table)  # alone: it takes most of the memory
        run_each(__file__, [op.name for op in operators], table)
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()
