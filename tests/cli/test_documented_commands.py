"""Every command of README and docs has options that exist."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from torchcommodity.cli._application import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINE = re.compile(r"^(?:torchrun .* -m )?torchcommodity (.+)$", re.M)


def commands(page: Path) -> list[str]:
    """The commands in the code blocks of a page, with continued lines joined."""
    blocks = "".join(page.read_text("utf-8").replace("\\\n", "").split("```")[1::2])
    return LINE.findall(blocks)


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands(page)}))
def test_documented_command_has_known_options(line: str) -> None:
    words = shlex.split(re.split(r" [>|] ", line)[0], comments=True)
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"unknown command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    context = command.context_class(command)
    command.make_parser(context).parse_args(words)
