"""Outputs: none replaces, enters or contains an input; a replaced file keeps its mode, a symbolic link stays one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchcommodity.data import check_output, protect_inputs, write_atomic


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("p.csv", "panels/a.parquet", "panels/sub/b.parquet", "db.duckdb", "results/run=1/forecasts.parquet"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"old")
    os.symlink("p.csv", "link.csv")
    os.link("p.csv", "hard.csv")
    os.symlink("panels", "elsewhere")
    yield
    assert Path("p.csv").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("output", "source", "kind"),
    [
        ("p.csv", "p.csv", "file"),
        ("./panels/../p.csv", "link.csv", "file"),
        ("link.csv", "p.csv", "file"),
        ("hard.csv", "p.csv", "file"),
        ("panels/new.parquet", "panels", "file"),
        ("elsewhere/new.parquet", "panels", "folder"),
        ("panels/new.parquet", "panels/*.parquet", "file"),
        ("panels/new.parquet", "panels/**/*.parquet", "folder"),
        ("results", "results/run=1/forecasts.parquet", "folder"),
        ("results", "results/*/*.parquet", "folder"),
        ("db.duckdb", "db.duckdb:prices", "file"),
        ("db.duckdb", "db.duckdb", "database"),
        ("panels/db.duckdb", "panels", "database"),
        ("p.csv", "sql:SELECT * FROM 'p.csv'", "file"),
        ("p.csv", "sql:SELECT * FROM p.csv", "file"),
        ("p.csv", "sql:SELECT * FROM read_csv('*.csv')", "file"),
    ],
)
def test_output_that_meets_an_input_is_rejected(output: str, source: str, kind: str) -> None:
    with pytest.raises(ValueError, match=r"^--out: expected an output apart from the inputs; got .* which .* input"):
        check_output(output, source, kind=kind, label="--out")  # type: ignore[arg-type]
    with protect_inputs(source), pytest.raises(ValueError, match="expected an output apart from the inputs"):
        check_output(output, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "source", "kind"),
    [
        ("q.csv", "p.csv", "file"),
        ("results", "panels", "folder"),
        ("panels/new.parquet", "panels/a.parquet", "folder"),
        ("panels/new.parquet", "panels/*/*.csv", "folder"),
        ("db.duckdb", "db.duckdb:prices", "database"),
        ("embedded", "embedded", "file"),
        ("q.csv", "s3://bucket/q.csv", "file"),
        ("q.csv", "sql:SELECT * FROM 'p.csv' WHERE name = 'q.csv'", "file"),
    ],
)
def test_output_apart_from_the_inputs_is_accepted(output: str, source: str, kind: str) -> None:
    check_output(output, source, kind=kind)  # type: ignore[arg-type]


def test_write_atomic_rejects_inputs_and_devices() -> None:
    with protect_inputs("p.csv"):
        write_atomic("q.csv", b"new")
        with pytest.raises(ValueError, match="expected an output apart from the inputs"):
            write_atomic("link.csv", b"new")
    os.mkfifo("pipe")
    with pytest.raises(ValueError, match="expected a regular file to replace; got a device or pipe"):
        write_atomic("pipe", b"new")
    assert not list(Path().glob(".*"))


def test_write_atomic_keeps_mode_and_symbolic_link() -> None:
    secret = Path("panels/sub/secret.csv")
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    os.symlink("panels/sub/secret.csv", "secret.csv")
    assert write_atomic("secret.csv", b"new") == Path("secret.csv")
    assert Path("secret.csv").is_symlink()
    assert (secret.read_bytes(), secret.stat().st_mode & 0o777) == (b"new", 0o600)
    assert not list(Path().rglob(".*"))
