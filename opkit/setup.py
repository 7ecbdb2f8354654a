"""README.md for PyPI, where relative links lead nowhere: they go to the files of this version on GitHub."""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "torch_opkit" / "__init__.py").read_text("utf-8"), re.MULTILINE)[
    1
]
FILES = f"https://github.com/torchcommodity/torchcommodity/blob/v{VERSION}/opkit/"

setup(
    long_description=re.sub(r"(\]\()(?!https?://|#)", rf"\g<1>{FILES}", (ROOT / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
