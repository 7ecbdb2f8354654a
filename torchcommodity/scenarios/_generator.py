"""Scenarios: generated returns that say so, and what makes them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from arch.bootstrap import StationaryBootstrap, optimal_block_length
from torch import Tensor

from torchcommodity.data import (
    SYNTHETIC,
    DataError,
    Panel,
    Provenance,
    SyntheticTensor,
    synthetic_symbol,
    utc_now,
    write_atomic,
)
from torchcommodity.models import ScenarioConfig, ScenarioGenerator
from torchcommodity.training import one_thread, read_tensor_file, tensor_file_bytes

FORMAT = "torchcommodity.scenarios.1"
CHUNK = 256  # paths generated at a time


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Generated log-returns of N symbols on P paths; training and scoring refuse them.

    Args:
        returns: `(P, T, N)` log-returns per row, float64.
        symbols: N names, each with the prefix `synthetic:`.
        origin: what made them, in words.

    >>> import torch
    >>> made = Scenarios(SyntheticTensor(torch.zeros(2, 3, 1)), ("synthetic:WTI",), "by hand")
    >>> made.frame().iloc[0].to_dict()
    {'path': 1, 'row': 1, 'symbol': 'synthetic:WTI', 'log_return': 0.0, 'source': 'synthetic'}
    """

    returns: SyntheticTensor
    symbols: tuple[str, ...]
    origin: str

    synthetic = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "returns", SyntheticTensor(self.returns, origin=self.origin))
        object.__setattr__(self, "symbols", tuple(map(synthetic_symbol, self.symbols)))
        if self.returns.dim() != 3 or self.returns.shape[-1] != len(self.symbols):
            got = f"{tuple(self.returns.shape)} for {len(self.symbols)}"
            raise ValueError(f"Scenarios: expected returns (P, T, N) of N symbols; got {got}")

    def __len__(self) -> int:
        return int(self.returns.shape[0])

    def frame(self) -> pd.DataFrame:
        """Long table: path and row from 1, symbol, log_return, source; the last says synthetic on every line."""
        path, row, n = (i.ravel() for i in np.indices(tuple(self.returns.shape)))
        table: pd.DataFrame = pd.DataFrame(
            {
                "path": path + 1,
                "row": row + 1,
                "symbol": np.array(self.symbols, dtype=object)[n],
                "log_return": self.returns.plain().numpy().ravel(),
                "source": SYNTHETIC,
            }
        )
        return table

    def panel(self, path: int, after: Panel) -> Panel:
        """One path, from 0, as prices that go on from each symbol's last positive price in a real panel.

        The panel is marked in its symbols and in the publisher of every column. Rows are the next business days.

        Raises:
            DataError: `after` lacks a symbol, or a symbol has no positive price in it.
        """
        real = after.select([symbol.removeprefix(f"{SYNTHETIC}:") for symbol in self.symbols])
        values = real.values.plain()
        known = torch.isfinite(values) & (values > 0)
        if not bool(known.any(0).all()):
            raise DataError("scenarios: expected a positive price of every symbol to go on from; got none for one")
        last = values.gather(0, (len(values) - 1 - known.flip(0).int().argmax(0))[None])[0]
        rows = int(self.returns.shape[1])
        dates = np.busday_offset(real.dates[-1], np.arange(1, rows + 1), roll="backward")
        mark = [Provenance(SYNTHETIC, self.origin, "none", utc_now(), "", symbol) for symbol in self.symbols]
        return Panel(last * self.returns[path].cumsum(0).exp(), dates, self.symbols, real.units, tuple(mark))  # type: ignore[arg-type]


@dataclass(frozen=True)
class ScenarioRecord:
    """What a generator was fitted on and how."""

    seed: int
    first: str  # date of the first return
    through: str  # date of the last
    rows: int  # with a return of every symbol
    left_out: int  # rows on which a return is not known: a missing price, or a roll without a curve
    steps: int  # of the generator; 0: by moments alone


@dataclass(frozen=True)
class ScenarioMaker:
    """A fitted generator with its symbols, in their order, and the record of its fit."""

    generator: ScenarioGenerator
    symbols: tuple[str, ...]
    record: ScenarioRecord

    @one_thread()
    @torch.no_grad()
    def sample(self, paths: int, *, rows: int | None = None, seed: int = 0) -> Scenarios:
        """Paths of log-returns `(paths, rows, N)`; the same seed gives the same bits on the CPU.

        Args:
            paths: how many.
            rows: days on each; the window that the generator was trained on if None.
            seed: of the noise.

        Raises:
            ValueError: `paths` or `rows` is not positive.
        """
        rows = self.generator.config.window if rows is None else rows
        if paths < 1 or rows < 1:
            raise ValueError(f"ScenarioMaker.sample: paths and rows must be positive; got {paths} and {rows}")
        order, made = torch.Generator().manual_seed(seed), []
        for start in range(0, paths, CHUNK):
            noise = torch.randn(min(CHUNK, paths - start), rows, self.generator.noise, generator=order)
            made.append(self.generator.eval()(noise).double())
        origin = f"scenario generator fitted on {self.record.first} to {self.record.through}, seed {seed}"
        return Scenarios(SyntheticTensor(torch.cat(made)), self.symbols, origin)

    def save(self, path: str | Path) -> None:
        """Write one file, whole or not at all: safetensors with settings, symbols, record and a checksum."""
        write_atomic(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        about = {"symbols": self.symbols, "config": asdict(self.generator.config), "record": asdict(self.record)}
        return tensor_file_bytes(FORMAT, self.generator.state_dict(), about)

    @classmethod
    def load(cls, path: str | Path) -> "ScenarioMaker":
        """Read a file of `save`; it makes the same paths.

        Raises:
            ValueError: the file is damaged, cut short, or was not written by `ScenarioMaker.save`.
        """
        state, about = read_tensor_file(path, FORMAT, "ScenarioMaker")
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about["config"].items()}
        generator = ScenarioGenerator(len(about["symbols"]), ScenarioConfig(**settings))
        generator.load_state_dict(state)
        return cls(generator.eval(), tuple(about["symbols"]), ScenarioRecord(**about["record"]))


def stationary_bootstrap(
    returns: Tensor,  # (R, N)
    symbols: tuple[str, ...],
    paths: int,
    rows: int,
    *,
    seed: int = 0,
    block: float | None = None,
) -> Scenarios:
    """Paths cut from the past: blocks of geometric length, the assets of a row together. The baseline to beat.

    Args:
        returns: R real log-returns, all finite.
        symbols: N names.
        paths: how many.
        rows: of each, at most R.
        seed: of the blocks.
        block: mean length in rows; by default the optimal length for r^2, averaged over the assets.

    References:
        Politis, Romano (1994). The stationary bootstrap. JASA 89. doi:10.1080/01621459.1994.10476870.
        Patton, Politis, White (2009). Correction to "Automatic block-length selection for the dependent bootstrap".
        Econometric Reviews 28(4). doi:10.1080/07474930802459016.
    """
    past = returns.double().numpy()
    if rows > len(past) or paths < 1:
        got = f"{paths} of {rows}"
        raise ValueError(f"stationary_bootstrap: expected paths >= 1 of at most {len(past)} rows; got {got}")
    mean = float(optimal_block_length(past**2)["stationary"].mean()) if block is None else block
    each = len(past) // rows
    drawn = [x for (x,), _ in StationaryBootstrap(mean, past, seed=seed).bootstrap(-(-paths // each))]  # type: ignore[arg-type]
    cut = np.concatenate([x[: each * rows].reshape(each, rows, -1) for x in drawn])[:paths]
    origin = f"stationary bootstrap of {len(past)} rows, mean block {mean:.1f}, seed {seed}"
    return Scenarios(SyntheticTensor(torch.from_numpy(cut)), symbols, origin)
