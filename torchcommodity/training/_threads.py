"""One thread for the short steps of a recurrent network and of a fit."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run on one thread of torch and of the BLAS under numpy, then put the numbers back; also a decorator.

    A step of the network is a few microseconds of work: threads that wait for one another at every step cost more than
    they bring, and on a busy machine four hundred times more. And the last bits of a sum by BLAS, and so of a fit by
    `arch` or scipy, depend on the number of its threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)
