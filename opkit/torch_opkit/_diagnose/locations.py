"""File and line of the user's code: of a running call, and of an exception."""

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

import numpy as np
import torch

LIBRARIES = tuple(str(Path(file).parent) for file in (torch.__file__, np.__file__, Path(__file__).parent))
GENERATED = ("<frozen", "<eval_with_key>", "<__array_function__")
STANDARD_LIBRARY = sysconfig.get_path("stdlib")
AUTOGRAD_FUNCTION = str(Path(torch.__file__).parent / "autograd" / "function.py")
HERE = str(Path(__file__).parent)
# losses and layers of this library are blamed only where no line of the user calls them
PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
ENTRY = str(Path(__file__).with_name("call.py"))  # the frame that calls the model and the loss function


class Place(NamedTuple):
    """Where a function is called: file and line, its name, and the code object that the line is part of."""

    location: str = ""
    function: str = ""
    code: CodeType | None = None
    applied_at: str = ""  # the line that applies an `autograd.Function`, if this one is in its forward


@cache
def is_library(file: str) -> bool:
    """Whether a file is not of the user: PyTorch, NumPy, the standard library or this package."""
    standard = file.startswith(STANDARD_LIBRARY) and "-packages" not in file
    return standard or file.startswith((*LIBRARIES, *GENERATED))


def current_place(function: str) -> Place:
    """The innermost frame outside libraries, down from the call of the model; without a location if there is none."""
    frame: FrameType | None = sys._getframe(1)
    place = Place("", function)
    while frame and frame.f_code.co_filename != ENTRY:
        if not is_library(frame.f_code.co_filename):
            above, applied_at = frame.f_back, ""
            if above is not None and above.f_code.co_filename == AUTOGRAD_FUNCTION:
                while above and is_library(above.f_code.co_filename):
                    above = above.f_back
                applied_at = _line(above) if above else ""
            here = Place(_line(frame), function, frame.f_code, applied_at)
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return here
            place = place if place.location else here
        frame = frame.f_back
    return place


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(traceback: TracebackType | None) -> str:
    """The innermost line of a traceback outside libraries, down from the call of the model or of backward()."""
    lines, entered = list[str](), False
    while traceback:
        file = traceback.tb_frame.f_code.co_filename
        if entered and not is_library(file):
            lines.append(f"{file}:{traceback.tb_lineno}")
        entered |= file.startswith(HERE)
        traceback = traceback.tb_next
    by_user = [line for line in lines if not line.startswith(PACKAGE)]
    return (by_user or lines or [""])[-1]
