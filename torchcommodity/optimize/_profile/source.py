"""Where the batches of the steps come from."""

from collections.abc import Iterable
from typing import Any

from torchcommodity.optimize._batches import check_iterable

END = object()


class BatchSource:
    """Batches one by one: a list or DataLoader starts again at its end, an iterator does not."""

    def __init__(self, batches: Iterable[Any]) -> None:
        check_iterable("profile", batches)
        self.batches, self.iterator = batches, iter(batches)

    def next(self) -> Any:
        """The next batch, or END."""
        batch = next(self.iterator, END)
        if batch is END and self.iterator is not self.batches:
            self.iterator = iter(self.batches)
            batch = next(self.iterator, END)
        return batch
