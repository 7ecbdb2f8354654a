"""Build of the native library, and of a wheel for every Python: the library holds no Python symbol."""

import importlib
import os
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
REPOSITORY = "https://github.com/torchcommodity/torchcommodity"


def import_library():
    """`torchcommodity.opkit._build.library`, without the package, which is imported when the library is there."""
    folder = ROOT / "torchcommodity" / "opkit" / "_build"
    spec = spec_from_file_location("native_build", folder / "__init__.py", submodule_search_locations=[str(folder)])
    sys.modules["native_build"] = module_from_spec(spec)
    return importlib.import_module("native_build.library")


library = import_library()


def extensions():
    if os.environ.get("TORCHCOMMODITY_NATIVE") == "0" or not library.has_compiler():
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
    package = (ROOT / "torchcommodity" / "__init__.py").read_text("utf-8")
    version = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)[1]
    text = (ROOT / "README.md").read_text("utf-8")
    for start, view in ((r"!\[[^]]*\]\(", "raw"), (r"\]\(", "blob")):  # images first
        text = re.sub(rf"({start})(?!https?://|#)", rf"\g<1>{REPOSITORY}/{view}/v{version}/", text)
    return text


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
    long_description=description(),
    long_description_content_type="text/markdown",
)
