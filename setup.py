"""Build of the native library, and of a wheel for every Python: the library holds no Python symbol."""

import os
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
REPOSITORY = "https://github.com/torchcommodity/torchcommodity"
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "torchcommodity/__init__.py").read_text("utf-8"), re.MULTILINE)[
    1
]
KIT = ROOT / "opkit"  # torch-opkit in a clone; the source distribution is without it
sys.path[:0] = [str(ROOT), str(KIT)]
RELEASED_KIT = f"torch-opkit=={VERSION}"

try:
    from native import library
except ModuleNotFoundError:  # torch-opkit is yet to be installed: setuptools asks only what the build requires
    if "egg_info" not in sys.argv:
        raise
    library = None


def requirements():
    """A clone takes its own torch-opkit, so that `pip install .` needs nothing else; what is released, the released."""
    kit = f"torch-opkit @ {KIT.as_uri()}" if KIT.is_dir() and "sdist" not in sys.argv else RELEASED_KIT
    return ["torch>=2.10", "numpy>=1.26", kit]


def extensions():
    if library is None or os.environ.get("TORCHCOMMODITY_NATIVE") == "0" or not library.has_compiler():
        return []  # every operator runs through its reference, slower, and the package says so
    sources = [str(path.relative_to(ROOT)) for path in library.sources(library.has_cuda())]
    name = ".".join(filter(None, ["torchcommodity", library.level(), "_C"]))
    return [Extension(name, sources)]


class Build(build_ext):
    def get_ext_filename(self, name):
        return str(Path(*name.split(".")).with_name(library.NAME))

    def build_extension(self, extension):
        # outside setuptools' temporary folder: an editable install would compile everything anew each time
        folder, level = ROOT / "build" / "temp", library.level()
        flags = [f"-march={level}"] if level else []
        (ROOT / "torchcommodity" / level).mkdir(exist_ok=True)  # an editable install copies the library there
        library.build_library(Path(self.get_ext_fullpath(extension.name)), folder, library.has_cuda(), flags)


class Wheel(bdist_wheel):
    def get_tag(self):
        platform = super().get_tag()[2]
        return "py3", "none", platform


def description():
    """README.md for PyPI, where relative links lead nowhere: they go to the files of this version on GitHub."""
    text = (ROOT / "README.md").read_text("utf-8")
    for start, view in ((r"!\[[^]]*\]\(", "raw"), (r"\]\(", "blob")):  # images first
        text = re.sub(rf"({start})(?!https?://|#)", rf"\g<1>{REPOSITORY}/{view}/v{VERSION}/", text)
    return text


setup(
    install_requires=requirements(),
    setup_requires=[] if KIT.is_dir() else [RELEASED_KIT],
    ext_modules=extensions(),
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
    long_description=description(),
    long_description_content_type="text/markdown",
)
