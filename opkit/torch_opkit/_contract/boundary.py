"""Bad input raises the documented error."""

import re

from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._contract.checks import register


@register(
    "Check arguments once, in the public function. Name the operator, the argument, what is expected and what was "
    "received: `opkit.arguments` has the checks.",
    first_sample_only=True,
)
def bad_input(case: Case) -> None:
    """Each bad input raises the expected error."""
    if not case.cases.bad:
        raise SkipCheck("there are no bad inputs: pass bad_inputs=[(arguments), ...]")
    for bad in case.cases.bad:
        errors = bad.error if isinstance(bad.error, tuple) else (bad.error,)
        names = " or ".join(error.__name__ for error in errors)
        try:
            case.cases.function(*bad.sample.tensors, **bad.sample.settings)
        except bad.error as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"{bad.sample}: expected {names}; got {error!r}") from error
        else:
            raise AssertionError(f"{bad.sample}: expected {names} {bad.message!r}; got no error")
        assert re.search(bad.message, message), f"{bad.sample}: expected {bad.message!r}; got {message!r}"
