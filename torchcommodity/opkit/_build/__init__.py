"""Builds of native operators on LibTorch's stable ABI: ahead of time, and just in time.

`setup.py` runs the modules `library`, `compiler`, `cache` and `architectures` before the package can be imported: they
import each other only, relatively, and the standard library.
"""
