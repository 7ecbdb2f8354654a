"""Fit a forecaster: the econometric part in closed form, then the network may bend its scale."""

from pathlib import Path

import numpy as np

from torchcommodity.data import Panel, check_not_synthetic
from torchcommodity.forecast._forecaster import FitRecord, Forecaster
from torchcommodity.models import build_model
from torchcommodity.training import (
    FitConfig,
    Progress,
    RunOptions,
    calibrate,
    check_fit,
    model_inputs,
    one_thread,
    train,
)


@one_thread()
def fit(
    panel: Panel,
    config: FitConfig | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    every: float = 60.0,
    tensorboard: Path | None = None,
    through: str | np.datetime64 | None = None,
) -> Forecaster:
    """Fit a forecaster on a panel of real prices.

    Args:
        panel: raw prices. A price that is missing, zero or negative is bridged: the next return spans the gap.
        config: the settings; the defaults if None.
        seed: decides the network's start and the order of training; the same seed gives the same bits on the CPU.
        progress: called as progress(done, of, what) while the network trains.
        checkpoint: a file that a training which is interrupted leaves, and is carried on from by the same call: the
            result has the bits of one that was not. It is taken away at the end.
        every: seconds between two writes of it.
        tensorboard: a folder for the curves of the losses.
        through: the last date used; all rows if None.

    Returns:
        a Forecaster. Its record says which epoch was kept and for which horizons; where no epoch beats the econometric
        baseline on a later block of time, the baseline stands and the record says so.

    Raises:
        ValueError: a symbol has no positive price or too few returns for its warm-up and two longest horizons; the
            checkpoint is damaged, or that of another training; the panel is synthetic.
    """
    check_not_synthetic("fit", panel)
    config = config or FitConfig()
    panel = panel if through is None else panel.between(None, through)
    past = model_inputs(panel, config.model.har.horizons[-1])
    check_fit(past, panel.symbols, config.model.har)
    model = build_model(config.model, len(panel.symbols), seed)
    options = RunOptions(progress, checkpoint, every, tensorboard)
    training = train(model, past, config.train, config.symmetry, seed, options)
    calibrate(model.har, past, config.symmetry)
    first, last = str(panel.dates[0]), str(panel.dates[-1])
    record = FitRecord(seed, first, last, len(panel), **training._asdict(), curve=past.curve is not None)
    # the sha256 says which prices these are; the time at which they were read would make every file another one
    sources = tuple({k: v for k, v in source.items() if k != "retrieved"} for source in panel.sources())
    return Forecaster(model, panel.symbols, record, panel.contracts, sources)
