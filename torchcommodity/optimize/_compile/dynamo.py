"""What Dynamo records while it compiles: graph breaks, recompilations, errors. All private names of it are here."""

import re

import torch._dynamo
from torch._dynamo.utils import get_compilation_metrics, graph_break_reasons

from torchcommodity.optimize._compile.result import GraphBreak, Recompilation

FILE = re.compile(r'File "(.+?)", line (\d+)')
USELESS = ("This graph break is fundamental", "Please report", "It may be possible to write")
BRANCH = ("generic_jump", "Data-dependent branching")
BRANCH_FIX = "Use torch.where, or torch.cond, instead of a Python branch on the values of a Tensor."
LIMIT = "recompile_limit"


class CompileLog:
    """Graph breaks and compilations since it was made."""

    def __init__(self) -> None:
        self.breaks, self.known = len(graph_break_reasons), {id(x) for x in get_compilation_metrics()}
        self.compilations = 0

    def recompilations(self, batch: str) -> list[Recompilation]:
        """Functions that were compiled again since the last call, because of a batch."""
        new = [x for x in get_compilation_metrics() if id(x) not in self.known]
        self.known |= {id(x) for x in new}
        self.compilations += len(new)
        recompilations = []
        for x in new:
            if reason := getattr(x, "recompile_reason", None):
                function = f"{x.co_name} ({x.co_filename}:{x.co_firstlineno})"
                guard = re.sub(r"^\d+/\d+: ", "", reason.splitlines()[0]).partition("  #")[0]  # without source and hint
                recompilations.append(Recompilation(batch, function, guard.strip()))
        return recompilations

    def graph_breaks(self) -> tuple[GraphBreak, ...]:
        """Distinct graph breaks, in order."""
        breaks = []
        for x in graph_break_reasons[self.breaks :]:
            words, fix = _reason_and_fix(x.reason)
            location = f"{x.user_stack[-1].filename}:{x.user_stack[-1].lineno}" if x.user_stack else ""
            breaks.append(GraphBreak(words, location, fix))
        return tuple(dict.fromkeys(breaks))


def compile_limit() -> int:
    """Compilations of one function, after which Dynamo runs it eagerly."""
    return int(getattr(torch._dynamo.config, LIMIT, 8))


def describe_error(error: Exception) -> str:
    """Reason, place and remedy of an error of the compiler."""
    text = str(error)
    location = ":".join(FILE.findall(text)[-1]) if FILE.search(text) else ""
    reason, fix = _reason_and_fix(text)
    where = f" at {location}" if location else ""
    return f"{reason}{where}. {fix or 'Run it with TORCH_LOGS=+dynamo for the details'}".rstrip(".") + "."


def _reason_and_fix(text: str) -> tuple[str, str]:
    """The first line with its explanation, and the first useful hint, of a message of Dynamo."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["unknown"]
    if lines[0].startswith(BRANCH):
        return "data-dependent branching: Python asks for the values of a Tensor", BRANCH_FIX
    explanation = next((x.partition(": ")[2] for x in lines if x.startswith("Explanation: ")), "")
    if not explanation and len(lines) > 1 and lines[0].endswith("raised:"):  # by the backend
        explanation = lines[1]
    hints = [line.partition(": ")[2] for line in lines if line.startswith("Hint: ")]
    fix = next((hint for hint in hints if not hint.startswith(USELESS)), "")
    return ": ".join(filter(None, [lines[0].rstrip(":."), explanation.rstrip(".")])), fix
