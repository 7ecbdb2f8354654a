"""The threads of the native kernels: their results in forks, and in several Python threads at once."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from torchcommodity import ops


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def panel() -> torch.Tensor:
    return torch.randn(2500, 300, generator=torch.Generator().manual_seed(0))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12
def test_kernel_of_two_threads_runs_in_a_fork(two_threads) -> None:
    x = panel()
    expected = ops.rolling_mean(x, 60).numpy()
    child = os.fork()
    if child == 0:  # an exception must not leave the child, which would go on with the tests
        equal = np.array_equal(ops.rolling_mean(x, 60).numpy(), expected, equal_nan=True)  # without torch's own threads
        os._exit(0 if equal else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_kernels_called_from_several_python_threads_agree(two_threads) -> None:
    x = panel()
    expected = ops.rolling_mean(x, 60)[60:]
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(lambda _: ops.rolling_mean(x, 60)[60:], range(32)))
    assert all(torch.equal(y, expected) for y in results)
