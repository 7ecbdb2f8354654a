"""One thread for the short steps of a recurrent network."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run on one thread of torch, then put the number back; also a decorator.

    A step of the network is a few microseconds of work: threads that wait for one another at every step cost more than
    they bring, and on a busy machine four hundred times more.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
