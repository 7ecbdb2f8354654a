"""Layouts of vendors and tools: one record per format, and the roles of the columns of a table."""

from torchcommodity.data._sources.formats.detect import detect_format as detect_format
from torchcommodity.data._sources.formats.fields import field_names as field_names
from torchcommodity.data._sources.formats.file_name import symbol_of_file as symbol_of_file
from torchcommodity.data._sources.formats.format import Adjustment as Adjustment
from torchcommodity.data._sources.formats.format import DateOrder as DateOrder
from torchcommodity.data._sources.formats.format import Decimal as Decimal
from torchcommodity.data._sources.formats.format import Format as Format
from torchcommodity.data._sources.formats.format import ReadOptions as ReadOptions
from torchcommodity.data._sources.formats.vendors import FORMATS as FORMATS

__all__ = [
    "FORMATS",
    "Adjustment",
    "DateOrder",
    "Decimal",
    "Format",
    "ReadOptions",
    "detect_format",
    "field_names",
    "symbol_of_file",
]
