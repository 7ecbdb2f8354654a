"""From the graph of a formula to a program: statements in order, each loop in one piece.

Only statements on a path from a register of a loop back to it are in its body, which runs row by row. What the body
needs comes before it, what needs the loop comes after it; both run over many rows at a time.
"""

from torchcommodity.ops._series.program import Statement, format_program
from torchcommodity.ops.series._expression import Loop, Node


def schedule(outputs: list[Node], panels: int, dtype: str) -> str:
    """The program that computes `outputs` of `panels` panels."""
    lines = _Lines(panels)
    registers = tuple(lines.register(node) for node in outputs)
    return format_program([*lines.statements, Statement("return", registers, (dtype,))])


class _Lines:
    """Statements in order, and the register of every node that has one."""

    def __init__(self, panels: int) -> None:
        self.statements = [Statement("panels", attributes=(panels,))]
        self.registers: dict[Node, int] = {}
        self.open_loop: Loop | None = None

    def register(self, node: Node) -> int:
        """The register of a node; writes the statements that it needs first."""
        if node not in self.registers:
            for operand in _in_order([node]):
                if operand not in self.registers:
                    self._loop(operand.loop) if operand.loop else self._write(operand)
        return self.registers[node]

    def _write(self, node: Node) -> None:
        self.registers[node] = len(self.statements)
        operands = tuple(self.registers[operand] for operand in node.operands)
        self.statements.append(Statement(node.name, operands, node.attributes))

    def _loop(self, loop: Loop) -> None:
        if self.open_loop:
            raise ValueError("recur: loops must not be nested; carry all values in one recur instead")
        body = _body(loop)
        self.open_loop = loop
        for node in body:
            for operand in node.operands:
                if operand not in body and operand not in loop.feedbacks:
                    self.register(operand)
        for result in loop.results:  # one that needs no register of the loop
            if result not in body and result not in loop.feedbacks:
                self.register(result)
        self.open_loop = None
        for node in [*loop.feedbacks, *body]:
            self._write(node)
        for feedback, result in zip(loop.feedbacks, loop.results, strict=True):
            operands = (self.registers[feedback], self.registers[result])
            self.statements.append(Statement("assign", operands))


def _body(loop: Loop) -> list[Node]:
    """The nodes on a path from a register of the loop back to it, in order."""
    dependent = set(loop.feedbacks)
    body = []
    for node in _in_order(loop.results):
        if node not in dependent and any(operand in dependent for operand in node.operands):
            dependent.add(node)
            body.append(node)
    return body


def _in_order(roots: list[Node]) -> list[Node]:
    """Every node that the roots need, operands first."""
    order: dict[Node, None] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, operands_done = stack.pop()
        if operands_done:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return list(order)
