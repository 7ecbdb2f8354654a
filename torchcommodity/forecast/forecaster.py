"""A fitted forecaster and its file: a safetensors file whose metadata are JSON; nothing in it is code."""

import hashlib
import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.models import build
from torchcommodity.models.registry import name_of, settings

FORMAT = "torchcommodity.forecaster.3"
DTYPES: dict[str, tuple[torch.dtype, np.dtype[Any]]] = {
    "F32": (torch.float32, np.dtype("<f4")),
    "F64": (torch.float64, np.dtype("<f8")),
}


@dataclass(frozen=True)
class FitRecord:
    """What happened in a fit: which data, which epoch, for which horizons the network is used, and the mix."""

    seed: int
    first: str  # date of the first row
    through: str  # date of the last row
    rows: int
    epoch: int  # 0: the econometric baseline
    corrected: tuple[int, ...]  # horizons whose scale the network corrects
    validation: tuple[
        tuple[float, ...], ...
    ]  # [epoch][horizon]: held-back pinball loss against the baseline in percent
    note: str  # the same in words
    curve: bool = False  # whether the curve of nearby contracts was there to learn from


@dataclass(frozen=True)
class Forecaster:
    """A fitted model with the symbols whose prices it reads, in their order, and the record of its fit.

    `contracts` are their product codes, as `data.Panel` has them: the model expects their rolls. `sources` say where
    the prices came from that it learnt from, as `Panel.sources` does.
    """

    model: Any  # of `models.MODELS`
    symbols: tuple[str, ...]
    record: FitRecord
    contracts: tuple[str | None, ...] = ()
    sources: tuple[dict[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "contracts", tuple(self.contracts) or (None,) * len(self.symbols))

    @property
    def horizons(self) -> tuple[int, ...]:
        horizons: tuple[int, ...] = self.model.har.config.horizons
        return horizons

    @property
    def levels(self) -> tuple[float, ...]:
        levels: tuple[float, ...] = self.model.har.config.levels
        return levels

    def save(self, path: str | Path) -> None:
        """Write one file: safetensors with settings, symbols, record and a checksum in its metadata."""
        state = {name: x.detach().cpu().contiguous() for name, x in self.model.state_dict().items()}
        body, header = b"", {}
        for name, x in state.items():
            kind = next(k for k, (dtype, _) in DTYPES.items() if dtype == x.dtype)
            raw = x.numpy().astype(DTYPES[kind][1]).tobytes()
            header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(body), len(body) + len(raw)]}
            body += raw
        config = self.model.config
        model = {"name": name_of(config), "config": asdict(config)}
        named = {"symbols": self.symbols, "contracts": self.contracts, "sources": self.sources}
        about = {**named, "model": model, "record": asdict(self.record)}
        meta = {"format": FORMAT, "about": json.dumps(about), "sha256": _checksum(header, json.dumps(about), body)}
        head = json.dumps({"__metadata__": meta, **header}).encode()
        Path(path).write_bytes(struct.pack("<Q", len(head)) + head + body)

    @classmethod
    def load(cls, path: str | Path) -> "Forecaster":
        """Read a file of `save`; the forecaster gives the same bits.

        Raises:
            ValueError: the file is damaged, cut short, or was not written by `Forecaster.save`.
        """
        meta, header, body = _parse(Path(path))
        about = json.loads(meta["about"])
        config = settings(about["model"]["name"], about["model"]["config"])
        model = build(config, len(about["symbols"]))
        model.load_state_dict({name: _tensor(entry, body) for name, entry in header.items()})
        record = about["record"] | {
            "corrected": tuple(about["record"]["corrected"]),
            "validation": tuple(map(tuple, about["record"]["validation"])),
        }
        return cls(
            model, tuple(about["symbols"]), FitRecord(**record), tuple(about["contracts"]), tuple(about["sources"])
        )


def _parse(path: Path) -> tuple[dict[str, str], dict[str, Any], bytes]:
    raw = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", raw)
        header = json.loads(raw[8 : 8 + length])
        meta = header.pop("__metadata__")
        ours = meta["format"] == FORMAT
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"Forecaster.load: {path} must be a file of Forecaster.save; it cannot be read as one"
        ) from error
    if not ours:
        raise ValueError(f"Forecaster.load: {path} must be of format {FORMAT}; got {meta['format']!r}")
    body = raw[8 + length :]
    if meta.get("sha256") != _checksum(header, meta.get("about", ""), body):
        raise ValueError(f"Forecaster.load: {path} is damaged: its contents do not have the checksum written with them")
    return meta, header, body


def _checksum(header: dict[str, Any], about: str, body: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + about.encode() + body).hexdigest()


def _tensor(entry: dict[str, Any], body: bytes) -> Tensor:
    first, last = entry["data_offsets"]
    stored = DTYPES[entry["dtype"]][1]
    values = np.frombuffer(body[first:last], dtype=stored).astype(stored.newbyteorder("="))
    return torch.from_numpy(values).reshape(entry["shape"])
