"""Compressed files are unpacked by their content, within a limit."""

import bz2
import gzip
import io
import lzma
import zipfile

import pyarrow as pa
import pytest

from torchcommodity import data
from torchcommodity.data._sources.tables.open_table import decompress

CSV = b"date,WTI\n2020-04-17,18.27\n2020-04-20,-37.63\n"


def zipped(*names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, CSV)
    return stream.getvalue()


PACKED = {
    ".gz": gzip.compress(CSV),
    ".zst": pa.compress(CSV, "zstd", asbytes=True),
    ".bz2": bz2.compress(CSV),
    ".xz": lzma.compress(CSV),
    ".zip": zipped("wti.csv"),
}
per_codec = pytest.mark.parametrize("ending", PACKED)


def kinds(panel):
    return [finding.kind for finding in panel.findings]


@per_codec
def test_read_unpacks_by_content(tmp_path, ending):
    for name in (f"wti.csv{ending}", "wti.csv", "prices"):
        (tmp_path / name).write_bytes(PACKED[ending])
        panel = data.read(tmp_path / name)
        assert panel.values.tolist() == [[18.27], [-37.63]]
        assert ("compressed without ending" in kinds(panel)) == (not name.endswith(ending))


@per_codec
def test_read_reports_an_ending_without_compression(tmp_path, ending):
    (tmp_path / f"wti.csv{ending}").write_bytes(CSV)
    panel = data.read(tmp_path / f"wti.csv{ending}")
    assert "ending without compression" in kinds(panel)
    assert panel.values.tolist() == [[18.27], [-37.63]]


@per_codec
def test_read_rejects_a_truncated_file(tmp_path, ending):
    path = tmp_path / f"wti.csv{ending}"
    path.write_bytes(PACKED[ending][:-5])
    with pytest.raises(data.DataError, match="expected a complete"):
        data.read(path)


@per_codec
def test_decompress_stops_at_the_limit(ending):
    with pytest.raises(data.DataError, match="expected at most 10 bytes unpacked; got more"):
        decompress(PACKED[ending], "wti.csv", 10)


def test_read_rejects_a_zip_archive_of_several_files_by_name(tmp_path):
    (tmp_path / "prices.zip").write_bytes(zipped("wti.csv", "brent.csv"))
    with pytest.raises(data.DataError, match=r"got one with 2 files \(wti.csv, brent.csv\); unpack it"):
        data.read(tmp_path / "prices.zip")


def test_read_rejects_compressed_emptiness(tmp_path):
    (tmp_path / "wti.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(data.DataError, match="got an empty file"):
        data.read(tmp_path / "wti.csv.gz")


def test_text_that_begins_like_bzip2_is_text(tmp_path):
    (tmp_path / "bz.csv").write_text("BZh,date\n1.5,2020-04-17\n")
    assert data.read(tmp_path / "bz.csv").symbols == ("BZh",)
