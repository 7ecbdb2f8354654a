"""Programs: the text that a formula becomes, and its statements.

A program is a list of statements separated by "; ". Register %i is the value of statement i:

    panels 1; input 0; lag %1 10; subtract %1 %2; return float %3

`panels n` says that the first n inputs are panels, where a row is missing in all of them if it is not finite in one;
the others are parameters. `return` names the dtype of the outputs and their registers.
"""

from dataclasses import dataclass
from functools import cache

MAX_INPUTS = 8  # a kernel takes so many Tensors; a list of Tensors could not be differentiated
RETURN_DTYPES = ("float", "int8", "int16", "int64")


@dataclass(frozen=True)
class Statement:
    """`operands` are indices of earlier statements."""

    name: str
    operands: tuple[int, ...] = ()
    attributes: tuple[float | str, ...] = ()

    def __str__(self) -> str:
        registers = [f"%{i}" for i in self.operands]
        values = [value if isinstance(value, str) else repr(value) for value in self.attributes]
        return " ".join([self.name, *(values + registers if self.name == "return" else registers + values)])


@cache
def parse(program: str) -> tuple[Statement, ...]:
    """The statements of a program."""
    statements = []
    for line in program.split("; "):
        name, *words = line.split()
        operands = tuple(int(word[1:]) for word in words if word.startswith("%"))
        attributes = tuple(_attribute(word) for word in words if not word.startswith("%"))
        statements.append(Statement(name, operands, attributes))
    return tuple(statements)


def _attribute(word: str) -> float | str:
    if word in RETURN_DTYPES:
        return word
    return float(word) if any(c in word for c in ".enif") else int(word)


def format_program(statements: list[Statement]) -> str:
    return "; ".join(map(str, statements))


@cache
def count_outputs(program: str) -> int:
    return len(parse(program)[-1].operands)
