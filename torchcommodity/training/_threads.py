"""Single-threaded execution of training steps and fits."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch and BLAS to one thread, and restore torch's setting on exit; also a decorator.

    A training step takes microseconds; synchronizing threads costs more than it saves, by a factor of several hundred
    on a loaded machine. The last bits of a BLAS sum, and so of a fit by `arch` or scipy, depend on the number of
    threads.
    """
    import scipy.linalg  # noqa: F401  # the limit reaches a BLAS that is loaded, and scipy has its own

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)
