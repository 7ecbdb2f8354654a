"""Physical readers: each turns one file or frame into a `Table`; none of them knows a vendor's layout."""

from torchcommodity.data._sources.tables.delimited import read_delimited as read_delimited
from torchcommodity.data._sources.tables.frames import is_instance_of as is_instance_of
from torchcommodity.data._sources.tables.frames import read_frame as read_frame
from torchcommodity.data._sources.tables.table import Column as Column
from torchcommodity.data._sources.tables.table import Table as Table

__all__ = ["Column", "Table", "is_instance_of", "read_delimited", "read_frame"]
