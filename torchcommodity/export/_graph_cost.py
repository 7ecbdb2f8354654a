"""What a graph costs, before it runs: its operators on tensors without memory.

Sizes in a file are checked as they are computed, whatever they are made of: literals, sizes of inputs, and operators
that multiply them.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

LARGEST, LARGEST_PER_INPUT = 10**7, 1_000  # numbers of a tensor, and for each number of the inputs
WORK, WORK_PER_INPUT = 10**11, 10**6  # numbers written and multiplied by all operators, likewise
TRAINING = ("train", "training")  # arguments of normalizations, which would change their statistics
OPERATIONS = 100_000  # of one call; a recurrent layer of torch has several for each row


def check_cost(forward: Callable[[Tensor, Tensor], Tensor], columns: int, rows: int) -> None:
    """Raise ValueError if a call with prices (1, rows, columns) would need memory or time out of proportion."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # imports sympy

    with FakeTensorMode(allow_non_fake_inputs=True):
        prices, days = torch.zeros(1, rows, columns, dtype=torch.double), torch.zeros(1, rows, dtype=torch.long)
        with _Counter(prices.numel()):
            forward(prices, days)


class _Counter(TorchDispatchMode):
    """Counts what operators within it write and multiply."""

    def __init__(self, inputs: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.largest, self.most = max(LARGEST, LARGEST_PER_INPUT * inputs), max(WORK, WORK_PER_INPUT * inputs)
        self.work, self.operations, self.rule = 0.0, 0, f"for {inputs:,} prices"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils.flop_counter import flop_registry

        named = dict(zip((argument.name for argument in func._schema.arguments), args)) | (kwargs or {})
        # attention draws random numbers only for dropout; by default it has none
        is_seeded = torch.Tag.nondeterministic_seeded in func.tags
        is_random = is_seeded and ("attention" not in str(func) or named.get("dropout_p", 0.0) != 0)
        if is_random or any(named.get(name) is True for name in TRAINING):
            raise ValueError(f"a graph of a network that is not in training: no random numbers; got {func}")
        outputs = func(*args, **(kwargs or {}))
        values = outputs if isinstance(outputs, list | tuple) else [outputs]
        sizes = [x.numel() for x in values if isinstance(x, Tensor)]
        self.work, self.operations = self.work + sum(sizes), self.operations + 1
        if func is torch.ops.aten.linalg_matrix_exp.default:
            self.work += 100 * outputs.numel() * outputs.shape[-1]  # up to some 50 products of matrices
        elif func._overloadpacket in flop_registry:
            self.work += flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=outputs)
        if max(sizes, default=0) > self.largest:
            got = f"one of {max(sizes):.0e} of {func}"
            raise ValueError(f"a graph with tensors of at most {self.largest:.0e} numbers {self.rule}; got {got}")
        if self.work > self.most or self.operations > OPERATIONS:
            got = f"{self.work:.0e} in {self.operations:,} operations, the last {func}"
            raise ValueError(f"a graph with at most {self.most:.0e} numbers to compute {self.rule}; got {got}")
        return outputs
