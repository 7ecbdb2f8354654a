"""Metadata of an artifact."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from torchcommodity.export import Artifact, make_metadata
from torchcommodity.export._metadata import parse_metadata
from torchcommodity.forecast import Forecaster


def test_metadata_describes_the_forecaster(artifact: Artifact, pt2_file: Path, forecaster: Forecaster) -> None:
    metadata = artifact.metadata
    assert (metadata.format, metadata.symbols, metadata.contracts) == ("pt2", ("WTI", "BRENT"), ("CL", None))
    assert (metadata.horizons, metadata.levels, metadata.warmup) == ((2, 5), (0.1, 0.5, 0.9), 30)
    assert metadata.units == ("$/bbl", "$/bbl")
    assert metadata.provenance == forecaster.sources
    assert metadata.provenance[0]["publisher"].startswith("U.S. Energy")
    assert metadata.trained_through == "2016-12-30"
    assert pt2_file.read_bytes().endswith(metadata.sha256.encode())


def test_metadata_without_training_prices_is_that_of_an_earlier_version(artifact: Artifact) -> None:
    metadata = artifact.metadata
    assert parse_metadata(metadata.to_json(), metadata.sha256) == metadata
    assert [record.date for record in metadata.training_prices] == ["2016-12-30", "2016-12-30"]
    earlier = json.loads(metadata.to_json())
    del earlier["training_prices"]
    assert parse_metadata(json.dumps(earlier), "") == replace(metadata, training_prices=(), sha256="")


def test_metadata_and_graph_contain_no_local_path(pt2_file: Path) -> None:
    assert str(Path(__file__).parents[2]).encode() not in pt2_file.read_bytes()


def test_metadata_of_spot_prices_take_dates_before_the_roll_rules(forecaster: Forecaster) -> None:
    assert make_metadata(forecaster, "pt2").calendar == ("1970-01-01", "2060-12-31")
    spot = replace(forecaster, contracts=(None, None))
    assert make_metadata(spot, "pt2").calendar == ("1600-01-01", "2200-12-31")
    artifact = Artifact.from_forecaster(spot)
    days = torch.arange(-10000, -10000 + 40)[None]
    assert artifact(50 + torch.rand(1, 40, 2, dtype=torch.double), days).isfinite().all()
