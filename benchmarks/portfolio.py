"""The table of a page from what `torchcommodity portfolio` wrote.

python benchmarks/portfolio.py --page docs/portfolio.md --name futures out/long out/short
"""

import argparse
from pathlib import Path

import pandas as pd
from markdown import into

HEAD = "| portfolio | Sharpe | LSTM less it, 95 % interval | return | volatility | drawdown | turnover | costs |"


def table(folder: Path) -> str:
    """The portfolios of one folder, a table a cost."""
    found, days = pd.read_csv(folder / "portfolio.csv"), pd.read_csv(folder / "daily.csv")["date"]
    short = (pd.read_csv(folder / "weights.csv").drop(columns=["date", "cost_bps"]) < 0).any(axis=None)
    span = f"{days.iloc[0]} to {days.iloc[-1]}"
    return "\n\n".join(
        "\n".join(
            [
                f"**{'Long and short' if short else 'Long only'}, {cost:g} basis points a trade, {span}.**",
                "",
                HEAD,
                "|---|" + "---:|" * 7,
                *map(line, rows.to_dict("records")),
            ]
        )
        for cost, rows in found.groupby("cost_bps")
    )


def line(row: dict[str, float]) -> str:
    less = "" if row["low"] != row["low"] else f"{row['ours_less']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
    sure = less and (row["low"] > 0 or row["high"] < 0)
    cells = (
        row["portfolio"],
        f"{row['sharpe']:+.2f}",
        f"**{less}**" if sure else less,
        f"{100 * row['made']:+.1f} %",
        f"{100 * row['volatility']:.1f} %",
        f"{100 * row['drawdown']:.0f} %",
        f"{row['turnover']:.1f}",
        f"{100 * row['costs']:.2f} %",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="the --out of each run")
    parser.add_argument("--page", type=Path, help="a Markdown file with the two markers")
    parser.add_argument("--name", default="portfolio", help="of the markers")
    options = parser.parse_args()
    text = "\n\n".join(map(table, options.folders))
    print(text)
    if options.page:
        into(options.page, options.name, text)


if __name__ == "__main__":
    main()
