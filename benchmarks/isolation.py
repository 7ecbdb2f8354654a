"""Run a function in a process of its own, so that what it crashes or changes reaches nothing else."""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

FORK = multiprocessing.get_context("fork")  # what was imported is there, and the function needs no pickle


def isolate(function: Callable[[], Any], timeout: float) -> Any:
    """The result of the function in a forked process, or in words how that process ended."""
    receiver, sender = FORK.Pipe(duplex=False)

    def run() -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of torch's C++ and of compilers are not results
        sender.send(function())

    process = FORK.Process(target=run)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(timeout) else f"no result in {timeout:.0f} s"
    except EOFError:
        process.join()
        return f"the process ended with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
