"""A file that is there whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_atomic(path: str | Path, content: bytes) -> Path:
    """Write a file beside its place, then move it there: whoever reads finds the old one or the new one, whole.

    >>> write_atomic(getfixture("tmp_path") / "prices.csv", b"date,WTI").read_bytes()
    b'date,WTI'
    """
    path = Path(path)
    with tempfile.TemporaryDirectory(prefix=".torchcommodity-", dir=path.parent) as staging:
        whole = Path(staging) / path.name
        whole.write_bytes(content)
        os.replace(whole, path)
    return path
