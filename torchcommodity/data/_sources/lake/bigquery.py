"""Prices in tables of BigQuery, by Google's client library: rows come and go as Arrow."""

import io
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.lake.arrow import to_database_table
from torchcommodity.data._sources.lake.secrets import first_line

if TYPE_CHECKING:
    from torchcommodity.data._core.panel import Panel

# characters of BigQuery's own rules for names; a project may have a domain before it, as in example.com:project
NAME = re.compile(r"bq:(?P<project>([a-z0-9.-]+:)?[a-z0-9-]+)\.(?P<dataset>\w{1,1024})\.(?P<table>[\w -]{1,1024})")
TIMEOUT = 600.0  # seconds for a job


def write_table(panel: "Panel", target: str) -> None:
    """Replace a table by one load job, which BigQuery completes as a whole or not at all.

    Raises:
        DataError: another form of name, no such dataset, no permission, no answer.
        ImportError: the extra `bigquery` is not installed.
    """
    sink = io.BytesIO()
    pq.write_table(to_database_table(panel), sink)
    with _client(target) as (bigquery, client, table):
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_TRUNCATE,
        )
        job = client.load_table_from_file(sink, table, rewind=True, size=sink.tell(), job_config=config)
        job.result(timeout=TIMEOUT)


def read_rows(source: str, max_bytes: int) -> Any:
    """The rows of a table as a `pyarrow.Table`. Raises as `write_table` does."""
    with _client(source) as (_, client, name):
        table = client.get_table(name)
        if (table.num_bytes or 0) > max_bytes:
            raise DataError(f"{source}: expected at most {max_bytes} bytes; got {table.num_bytes}")
        return client.list_rows(table).to_arrow(create_bqstorage_client=False)


@contextmanager
def _client(target: str) -> Iterator[tuple[Any, Any, str]]:
    """The library, a client with the credentials of the environment, and the name of a table."""
    match = NAME.fullmatch(target)
    if not match:
        raise DataError(f"{target}: expected bq:PROJECT.DATASET.TABLE; got another form")
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import bigquery
    except ImportError as error:
        needs = "BigQuery needs google-cloud-bigquery: pip install 'torchcommodity[bigquery]'"
        raise ImportError(f"{target}: {needs}") from error
    try:
        with closing(bigquery.Client(project=match["project"])) as client:
            yield bigquery, client, target.removeprefix("bq:")
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise DataError(f"{target}: expected a table of BigQuery; got {first_line(error)}") from None
