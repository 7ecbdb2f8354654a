"""Fits, exponential moments and live updates on a device without float64."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.slow  # in a process of its own: a device can be registered only once
def test_econometrics_without_float64_agree_with_the_cpu_in_float64() -> None:
    script = subprocess.run([sys.executable, "econometrics.py"], cwd=FOLDER, capture_output=True, text=True)
    assert script.returncode == 0, script.stderr
    assert json.loads(script.stdout) == []
