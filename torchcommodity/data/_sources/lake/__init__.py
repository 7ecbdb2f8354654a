"""Tables that are not local files: objects on S3 and Google Cloud Storage, files of web servers."""

from torchcommodity.data._sources.lake.objects import is_remote as is_remote
from torchcommodity.data._sources.lake.objects import list_objects as list_objects
from torchcommodity.data._sources.lake.objects import local_copy as local_copy
from torchcommodity.data._sources.lake.objects import public_address as public_address
from torchcommodity.data._sources.lake.objects import write_object as write_object

__all__ = ["is_remote", "list_objects", "local_copy", "public_address", "write_object"]
