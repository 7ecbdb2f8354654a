"""A fault with its root cause: what a check raises when it knows more than that a number is wrong."""


class Fault(AssertionError):  # noqa: N818  # as AssertionError: a result, not an accident
    """A fault whose cause is known. `kind` identifies the cause, `fix` is the remedy for it, `location` file:line.

    A check that raises a plain AssertionError has found a fault too; then its own `fix` and name say what is known.
    """

    def __init__(self, kind: str, message: str, fix: str = "", location: str = "") -> None:
        super().__init__(message)
        self.kind, self.fix, self.location = kind, fix, location
