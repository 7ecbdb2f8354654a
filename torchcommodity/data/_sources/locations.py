"""Where sources are: tables in files, objects of S3, Google Cloud Storage and Azure, files of web servers."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.http import Http, download

SECRET = re.compile("SECRET|TOKEN|PASSWORD|ACCESS_KEY", re.IGNORECASE)
MAX_TEXT = 300  # characters


def first_line(error: Exception) -> str:
    """The first line of an error's text, or the name of its class; values of secret variables are shown as `***`.

    >>> os.environ["MY_TOKEN"] = "abcd1234"
    >>> first_line(ValueError("abcd1234 has expired\\nat 12:00"))
    '*** has expired'
    """
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value) > 3:
            text = text.replace(value, "***")
    return text[:MAX_TEXT]


STORES = {"s3": "torchcommodity[cloud]", "gs": "torchcommodity[cloud]", "az": "adlfs"}  # scheme: what to install
WEB = ("http", "https")
DEADLINE, MAX_WEB_BYTES = 600.0, 2**30  # seconds for, and bytes of, one file of a web server
HINTS = {
    "FileNotFoundError": "no such bucket or object",
    "PermissionError": "no permission; check the credentials and the policy of the bucket",
    "NoCredentialsError": "no credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}


def is_remote(source: str) -> bool:
    """Whether a source is the address of an object or of a file on a web server.

    >>> is_remote("s3://bucket/prices.parquet"), is_remote("prices.parquet"), is_remote("fred:WTI")
    (True, False, False)
    """
    return source.partition("://")[0] in (*STORES, *WEB) and "://" in source


def public_address(address: str) -> str:
    """The address without user, password, query and fragment, which can hold credentials.

    >>> public_address("https://user:secret@prices.org/wti.csv?X-Amz-Signature=abc")
    'https://prices.org/wti.csv'
    """
    scheme, _, rest = address.partition("://")
    if scheme in WEB:
        rest = urlsplit(address)._replace(scheme="", query="", fragment="").geturl().removeprefix("//")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def write_object(address: str, content: bytes) -> None:
    """Write an object, whole or not at all: one request, or an upload in parts that is completed at the end.

    Raises:
        DataError: no such bucket, no permission, no answer; an object of this name is unchanged.
        ImportError: the extra `cloud` is not installed.
    """
    if address.startswith(WEB):
        raise DataError(f"{public_address(address)}: expected s3://, gs:// or a path to write to; got a web address")
    files, path = _open_store(address)
    with _readable_errors(address, "an object that can be written"):
        files.pipe_file(path, content)


def list_objects(address: str) -> list[str]:
    """The Parquet objects below an address that ends in a slash, or that match one with `*`; none for any other.

    Raises:
        DataError: no such object, no permission, no answer.
        ImportError: the extra `cloud` is not installed.
    """
    scheme = address.partition("://")[0]
    if scheme in WEB or not (address.endswith("/") or "*" in address):
        return []
    files, path = _open_store(address)
    with _readable_errors(address, "Parquet objects"):
        names = files.glob(path) if "*" in path else files.find(path)
        if names := sorted(name for name in names if name.endswith(".parquet")):
            return [f"{scheme}://{name}" for name in names]
        raise FileNotFoundError


@contextmanager
def local_copy(source: str | os.PathLike[str], *, max_bytes: int | None = None) -> Iterator[Path]:
    """The path of a source: a local one as it is, objects as a temporary copy that is removed at the end.

    An address that ends in a slash, or a pattern with `*`, is a folder with the Parquet objects below it.

    Args:
        source: a path, or an address such as `s3://BUCKET/NAME` or `https://HOST/NAME`.
        max_bytes: reject larger objects; None = no limit, except 1 GiB from a web server.

    Raises:
        DataError: there is no such object, no permission, no answer, or more than `max_bytes`.
        ImportError: the extra `cloud` is not installed.

    >>> with local_copy("panels.parquet") as path:  # or "s3://lake/panels.parquet"
    ...     path.name
    'panels.parquet'
    """
    name = os.fspath(source)
    if not is_remote(name):
        yield Path(name)
        return
    with TemporaryDirectory(prefix="torchcommodity-") as folder:
        if objects := list_objects(name):
            shared = os.path.commonpath([os.path.dirname(address) for address in objects])
            for address in objects:
                _fetch(address, Path(folder) / os.path.relpath(address, shared), max_bytes)
            yield Path(folder)
        else:
            path = Path(folder) / (Path(urlsplit(public_address(name)).path).name or "object")
            _fetch(name, path, max_bytes)
            yield path


def _fetch(address: str, path: Path, max_bytes: int | None) -> None:
    """Copy one object to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if address.startswith(WEB):
        parts = urlsplit(address).query.split("&")
        secrets = tuple(filter(None, (value.partition("=")[2] for value in parts)))
        http = Http(deadline=DEADLINE)
        path.write_bytes(download(address, {}, public_address(address), http, secrets, max_bytes or MAX_WEB_BYTES))
        return
    files, name = _open_store(address)
    with _readable_errors(address, "an object that can be read"):
        size = files.info(name)["size"]
        if max_bytes is not None and size > max_bytes:
            raise DataError(f"{public_address(address)}: expected at most {max_bytes} bytes; got {size}")
        files.get_file(name, str(path))


def _open_store(address: str) -> tuple[Any, str]:
    """The file system of an address, with the credentials of the environment, and the path in it."""
    scheme, _, path = address.partition("://")
    bucket, _, key = path.partition("/")
    if not bucket or not key or "@" in bucket or any(not character.isprintable() for character in path):
        raise DataError(f"{public_address(address)}: expected {scheme}://BUCKET/NAME; got another form")
    try:
        import fsspec

        files = fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs an extra package: pip install '{STORES[scheme]}'") from error
    return files, path


@contextmanager
def _readable_errors(address: str, expected: str) -> Iterator[None]:
    """Turn the errors of the storage libraries, which have no common class, into a `DataError` without secrets."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as error:
        hints = [HINTS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in HINTS]
        reason = hints[0] if hints else f"{type(error).__name__}: {first_line(error)}"
        raise DataError(f"{public_address(address)}: expected {expected}; got {reason}") from None
