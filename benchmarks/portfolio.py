"""Results table of a docs page from the files that `torchcommodity portfolio` wrote.

python benchmarks/portfolio.py out/long out/short --page docs/results/portfolio.md --name futures
"""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from markdown import environment, format_table, replace_table

HEADS = ["portfolio", "Sharpe", "deflated", "LSTM minus portfolio, 95 % interval", "return", "volatility", "drawdown"]
HEADS += ["turnover", "costs"]


def tables(folder: Path) -> str:
    """The portfolios of one output folder, one table per cost."""
    results, dates = pd.read_csv(folder / "portfolio.csv"), pd.read_csv(folder / "daily.csv")["date"]
    short = (pd.read_csv(folder / "weights.csv").drop(columns=["date", "cost_bps"]) < 0).any(axis=None)
    kind, span = "Long and short" if short else "Long only", f"{dates.iloc[0]} to {dates.iloc[-1]}"
    return "\n\n".join(
        "\n\n".join(
            [
                f"**{kind}, {cost:g} basis points per trade, {span}.**",
                format_table(HEADS, list(map(cells, rows.to_dict("records")))),
                f"No portfolio better than equal weight: SPA p = {rows.iloc[0]['spa_p_value']:.2f}. "
                f"Probability of backtest overfitting: {100 * rows.iloc[0]['overfitting']:.0f} %.",
            ]
        )
        for cost, rows in results.groupby("cost_bps")
    )


def cells(result: dict[str, Any]) -> list[str]:
    """One portfolio; a significant difference is bold."""
    difference = ""
    if result["low"] == result["low"]:
        difference = f"{result['difference']:+.2f} [{result['low']:+.2f}, {result['high']:+.2f}]"
    if difference and (result["low"] > 0 or result["high"] < 0):
        difference = f"**{difference}**"
    return [
        result["portfolio"],
        f"{result['sharpe_ratio']:+.2f}",
        f"{result['deflated_sharpe']:.2f}",
        difference,
        f"{100 * result['annual_return']:+.1f} %",
        f"{100 * result['annual_volatility']:.1f} %",
        f"{100 * result['max_drawdown']:.0f} %",
        f"{result['turnover']:.1f}",
        f"{100 * result['costs']:.2f} %",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="Output folder of each run")
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--name", default="portfolio", help="Name of the table in the page")
    arguments = parser.parse_args()
    text = "\n\n".join([*map(tables, arguments.folders), environment("One seed")])
    print(text)
    if arguments.page:
        replace_table(arguments.page, arguments.name, text)


if __name__ == "__main__":
    main()
