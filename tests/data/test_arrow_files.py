"""Parquet, Feather and Arrow IPC files give equal panels."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from torchcommodity import data


@pytest.fixture
def frame():
    return data.embedded(["WTI", "BRENT"]).between("2020-01-01", "2020-12-31").to_pandas()


def ipc_stream(table):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


WRITERS = {
    "pandas parquet": lambda frame, path: frame.to_parquet(path),
    "pandas feather": lambda frame, path: frame.reset_index().to_feather(path),
    "polars parquet": lambda frame, path: pl.from_pandas(frame.reset_index()).write_parquet(path),
    "polars ipc": lambda frame, path: pl.from_pandas(frame.reset_index()).write_ipc(path),
    "polars ipc stream": lambda frame, path: pl.from_pandas(frame.reset_index()).write_ipc_stream(path),
    "feather zstd": lambda frame, path: feather.write_feather(frame.reset_index(), path, compression="zstd"),
    "arrow stream": lambda frame, path: path.write_bytes(ipc_stream(pa.Table.from_pandas(frame))),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_read_arrow_formats(tmp_path, frame, writer):
    WRITERS[writer](frame, tmp_path / "prices.bin")
    panel = data.read(tmp_path / "prices.bin")
    assert panel.symbols == ("WTI", "BRENT")
    assert np.array_equal(panel.values.plain().numpy(), frame.to_numpy(), equal_nan=True)
    assert panel.dates.tolist() == [day.date() for day in frame.index]


@pytest.mark.parametrize("ending", [".feather", ".arrow", ".parquet"])
def test_read_rejects_text_named_as_a_binary_file(tmp_path, ending):
    (tmp_path / f"prices{ending}").write_text("date,WTI\n2020-04-20,-37.63\n")
    with pytest.raises(data.DataError, match=r"expected .*, which begins with .*; got b'date'"):
        data.read(tmp_path / f"prices{ending}")


@pytest.mark.parametrize("writer", ["pandas feather", "arrow stream", "polars ipc"])
def test_read_rejects_a_truncated_arrow_file(tmp_path, frame, writer):
    WRITERS[writer](frame, tmp_path / "prices.arrow")
    body = (tmp_path / "prices.arrow").read_bytes()
    for size in (20, len(body) // 2, len(body) - 30):
        (tmp_path / "prices.arrow").write_bytes(body[:size])
        with pytest.raises(data.DataError, match="expected a complete Arrow file; got one that cannot be read"):
            data.read(tmp_path / "prices.arrow")


def test_read_folder_of_parquet_files(tmp_path, frame):
    for year_half, rows in {"a": frame[:100], "b": frame[100:]}.items():
        rows.to_parquet(tmp_path / f"{year_half}.parquet")
    for source in (tmp_path, tmp_path / "*.parquet"):
        panel = data.read(source)
        assert np.array_equal(panel.values.plain().numpy(), frame.to_numpy(), equal_nan=True)
        assert panel.provenance[0].location == str(source)


def test_read_folder_with_hive_partitions(tmp_path):
    panel = data.embedded(["WTI", "BRENT"]).between("2020-01-01", "2020-12-31")
    table = pa.Table.from_pandas(panel.to_pandas("long"), preserve_index=False)
    pq.write_to_dataset(table, tmp_path / "lake", partition_cols=["symbol"])
    loaded = data.read(tmp_path / "lake", ["WTI", "BRENT"])
    assert np.array_equal(loaded.values.plain().numpy(), panel.values.plain().numpy(), equal_nan=True)
    assert loaded.units == panel.units


def test_read_folder_rejects_files_of_other_columns(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet")
    frame[["WTI"]].to_parquet(tmp_path / "b.parquet")
    with pytest.raises(data.DataError, match=r"b.parquet: expected the columns of .*a.parquet"):
        data.read(tmp_path)


def test_read_folder_of_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(data.DataError, match="got a directory without one"):
        data.read(tmp_path)
    with pytest.raises(data.DataError, match="got a pattern of no file"):
        data.read(tmp_path / "*.parquet")


def test_read_names_the_row_of_a_bad_price(tmp_path):
    pd.DataFrame({"date": ["2020-04-17", "2020-04-20"], "WTI": [18.27, np.inf]}).to_feather(tmp_path / "wti.feather")
    with pytest.raises(data.DataError, match=r"wti.feather, row 2: 'WTI': expected a finite price"):
        data.read(tmp_path / "wti.feather")
