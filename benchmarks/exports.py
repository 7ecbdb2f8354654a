"""Time, size and accuracy of every model in every export format; the table of docs/results/exports.md.

python benchmarks/exports.py --page docs/results/exports.md
python benchmarks/exports.py --models har-lstm --formats onnx aoti
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from markdown import environment, replace_table

from torchcommodity import data, export, forecast
from torchcommodity.models import MODELS, default_config
from torchcommodity.training import FitConfig, TrainConfig

HEAD = (
    "| model | format | s | processor, s | size, kB | largest difference |",
    "|---|---|---:|---:|---:|---:|",
)


def fit(name: str) -> forecast.Forecaster:
    """A forecaster of three symbols whose network is active at every horizon."""
    panel = data.embedded().between("2012-01-01", "2016-12-31")
    fitted = forecast.fit(panel, FitConfig(default_config(name), TrainConfig(epochs=0)))
    if hasattr(fitted.model, "head"):
        torch.nn.init.normal_(fitted.model.head.weight, std=0.5, generator=torch.Generator().manual_seed(0))
        fitted.model.har.shrink.fill_(0.5)
    return fitted


def measure(name: str, format: export.Format, path: Path) -> None:
    """One export, in a process of its own, as of `torchcommodity export`."""
    fitted = fit(name)
    start, before = time.perf_counter(), processor_seconds()
    export.export(fitted, path, format)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    recent = data.embedded().between("2015-06-01", "2018-12-31")
    expected, actual = (
        fitted.predict(recent).log_returns,
        export.Artifact.load(path, trusted=True).predict(recent).log_returns,
    )
    difference = (actual - expected).abs().max().item()
    print(
        f"| {name} | {format} | {seconds:.0f} | {processor:.0f} | {path.stat().st_size / 1e3:,.0f} "
        f"| {f'{difference:.0e}' if difference else 'none'} |"
    )


def processor_seconds() -> float:
    """Of this process and of the compilers that it has started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--formats", nargs="+", choices=("pt2", "onnx", "aoti"), default=["pt2", "onnx", "aoti"])
    parser.add_argument("--page", type=Path, help="Markdown page whose table `exports` is replaced")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        name, format, path = options.once
        measure(name, format, Path(path))
        return
    lines = list(HEAD)
    with TemporaryDirectory() as folder:
        for name, format in ((name, format) for format in options.formats for name in options.models):
            cache = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/{name}-{format}"}  # empty: a first export
            command = [sys.executable, __file__, "--once", name, format, f"{folder}/artifact"]
            process = subprocess.run(command, env=os.environ | cache, stdout=subprocess.PIPE, text=True, check=True)
            lines.append(process.stdout.strip())
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join([*lines, "", environment("Three symbols; each export in a process of its own, without any cache")])
    replace_table(options.page, "exports", text) if options.page else print(text)


if __name__ == "__main__":
    main()
