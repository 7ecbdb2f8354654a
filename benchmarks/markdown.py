"""Generated tables in Markdown pages."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path


def replace_table(page: Path, name: str, table: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`."""
    before, start, rest = page.read_text().partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not (start and end):
        raise SystemExit(f"{page}: no <!-- {name} --> ... <!-- /{name} -->")
    page.write_text(f"{before}{start}\n{table}\n{end}{after}")


def environment(setting: str) -> str:
    """What was run, when, at which commit, on which machine."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    load = os.getloadavg()[0]
    return (
        f"{setting}; {date}, commit {commit or 'unknown'}, Python {platform.python_version()}, {processor()}, "
        f"{os.cpu_count()} cores, load {load:.1f}."
    )


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
