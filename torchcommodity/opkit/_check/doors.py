"""Bad input is refused at the door, in the promised words."""

import re

from torchcommodity.opkit._cases import Bad
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Skip, Subject


@row(
    "Check at the door, once, and say operator, argument, what was expected and what came: `opkit.arguments` helps.",
    once=True,
)
def bad_input(subject: Subject) -> None:
    """Each bad input meets the promised error."""
    if not subject.cases.bad:
        raise Skip("the record names no bad input")
    for bad in subject.cases.bad:
        _refused(subject, bad)


def _refused(subject: Subject, bad: Bad) -> None:
    try:
        subject.cases.function(*bad.sample.tensors, **bad.sample.settings)
    except bad.error as error:
        words = str(error)
    except Exception as error:
        raise AssertionError(f"{bad.sample}: {error!r}, not {bad.error.__name__}") from error
    else:
        raise AssertionError(f"{bad.sample}: not refused; promised: {bad.error.__name__} {bad.message!r}")
    assert re.search(bad.message, words), f"{bad.sample}: {words!r} does not match {bad.message!r}"
