"""The tables of the scoreboard's page: every model of the package on both tracks of the protocol.

python benchmarks/scoreboard.py --page docs/results/scoreboard.md      # with statsforecast installed
"""

import argparse
from pathlib import Path

from markdown import environment, replace_table

from torchcommodity.report import package_versions
from torchcommodity.scoreboard import TRACKS, load_track, run

PACKAGES = ("torch", "arch", "statsforecast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are replaced")
    parser.add_argument("--track", choices=TRACKS, help="Only this track")
    parser.add_argument("--without", default="", help="Models of statsforecast to leave out: autoarima")
    options = parser.parse_args()
    versions = package_versions("statsforecast")
    omitted = [name for name in options.without.split(",") if name]
    setting = ", ".join(f"{name} {versions[name]}" for name in PACKAGES)
    for name in [options.track] if options.track else TRACKS:
        text = f"{run(load_track(name), without=omitted).to_markdown()}\n\n{environment(setting)}"
        print(text)
        if options.page:
            replace_table(options.page, name, text)


if __name__ == "__main__":
    main()
