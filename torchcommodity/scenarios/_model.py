"""Fitted scenario generator: sample, save and load."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from torchcommodity.data import SyntheticTensor, write_atomic
from torchcommodity.models import ScenarioGanConfig, ScenarioGenerator
from torchcommodity.scenarios._scenarios import Scenarios
from torchcommodity.training import one_thread, read_tensor_file, tensor_file_bytes

FORMAT = "torchcommodity.scenarios.2"
CHUNK = 256  # paths generated at a time


@dataclass(frozen=True)
class ScenarioRecord:
    """Data and training of a fitted generator."""

    seed: int
    first: str  # date of the first return
    through: str  # date of the last return
    rows: int  # rows with a return of every symbol
    excluded_rows: int  # rows without a return of some symbol: a missing price, or a roll without a curve
    steps: int  # generator steps; 0: moments only


@dataclass(frozen=True, eq=False, repr=False)
class ScenarioModel:
    """Fitted generator with its symbols and the record of its fit; see `fit_scenarios`."""

    generator: ScenarioGenerator
    symbols: tuple[str, ...]
    record: ScenarioRecord

    def __repr__(self) -> str:
        span = f"fitted on {self.record.rows:,} rows {self.record.first} to {self.record.through}"
        return f"ScenarioModel({', '.join(self.symbols)}; {span}; {self.record.steps} steps)"

    @one_thread()
    @torch.no_grad()
    def sample(self, paths: int, *, rows: int | None = None, seed: int = 0) -> Scenarios:
        """Generate paths of log-returns (paths, rows, N); the same seed gives the same bits on the CPU.

        Args:
            paths: number of paths.
            rows: rows per path; by default the window of the training.
            seed: random seed.

        Raises:
            ValueError: `paths` or `rows` is not positive.
        """
        rows = self.generator.config.window if rows is None else rows
        if paths < 1 or rows < 1:
            raise ValueError(f"ScenarioModel.sample: paths and rows must be >= 1; got paths={paths}, rows={rows}")
        random, chunks = torch.Generator().manual_seed(seed), []
        for start in range(0, paths, CHUNK):
            noise = torch.randn(min(CHUNK, paths - start), rows, self.generator.noise_channels, generator=random)
            chunks.append(self.generator.eval()(noise).double())
        origin = f"scenario generator fitted on {self.record.first} to {self.record.through}, seed {seed}"
        return Scenarios(SyntheticTensor(torch.cat(chunks)), self.symbols, origin)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file, atomically, with settings, symbols, record and a checksum."""
        write_atomic(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Content of the file that `save` writes."""
        metadata = {"symbols": self.symbols, "config": asdict(self.generator.config), "record": asdict(self.record)}
        return tensor_file_bytes(FORMAT, self.generator.state_dict(), metadata)

    @classmethod
    def load(cls, path: str | Path) -> "ScenarioModel":
        """Read a file written by `save`; sampled paths have the same bits.

        Raises:
            ValueError: the file is damaged, truncated, or was not written by `ScenarioModel.save`.
        """
        state, metadata = read_tensor_file(path, FORMAT, "ScenarioModel")
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in metadata["config"].items()}
        generator = ScenarioGenerator(len(metadata["symbols"]), ScenarioGanConfig(**settings))
        generator.load_state_dict(state)
        return cls(generator.eval(), tuple(metadata["symbols"]), ScenarioRecord(**metadata["record"]))
