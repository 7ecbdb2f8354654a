"""Operators, functions, indicators, fits and live updates on the device "single", in one process: `python library.py`.

Prints the failures of each group as JSON.
"""

import json
import sys

import econometrics
import functions
import operators
import single_device

from torchcommodity.ops import indicators

LOOPS = {name for name in indicators.__all__ if name.startswith("ht_")} | {"mama", "sar", "sarext"}  # slow references


def main() -> None:
    names = [*functions.COMPOSED, *(name for name in indicators.__all__ if name not in LOOPS | {"lookback"})]
    results = {
        "operators": operators.failures_by_name(operators.NAMES, single_device.NAME),
        "functions": functions.failures_by_name(names),
        "econometrics": econometrics.failures(single_device.NAME),
    }
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
