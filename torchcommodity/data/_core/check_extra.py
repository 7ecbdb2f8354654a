"""Imported before the other modules: where pyarrow is missing, the error says what to install."""

from importlib.util import find_spec

if find_spec("pyarrow") is None:
    message = "torchcommodity.data needs pyarrow, which is not installed: pip install 'torchcommodity[forecast]'"
    raise ImportError(message, name="pyarrow")
