"""Value at risk, expected shortfall and whole distribution of ten futures: tests, scores and model confidence sets.

python benchmarks/tails.py folder-of-prices --page docs/results/risk.md
"""

import argparse
from pathlib import Path

import pandas as pd
from futures import futures
from markdown import environment, format_table, replace_table

import torchcommodity as tc
from torchcommodity import risk
from torchcommodity.forecast import Backtest, calendar

FIRST, LAST, LEVEL = 2017, 2023, 0.95
SIDES = ("long", "short")
TESTS = ("kupiec_p_value", "christoffersen_p_value", "z2_p_value")


def tail_table(backtest: Backtest, names: dict[int, str]) -> str:
    """Exceedances and number of symbols that a 5 % test rejects, for each side, horizon and model."""
    heads = ["horizon", "model", "observations", f"losses beyond VaR ({LEVEL:.0%}), long and short", "expected"]
    heads += ["Kupiec", "Christoffersen", "Z2", "FZ loss"]
    table = []
    records = pd.DataFrame(
        record
        for model in backtest.quantiles
        for side in SIDES
        for record in risk.evaluate_tails(backtest, LEVEL, model=model, side=side)
    )
    for horizon, of_horizon in records.groupby("horizon"):
        best = of_horizon.groupby("model")["fissler_ziegel"].mean().idxmin()
        for model, rows in of_horizon.groupby("model", sort=False):
            sides = [rows[rows["side"] == side] for side in SIDES]
            loss = f"{rows['fissler_ziegel'].mean():.3f}"
            table.append([
                names[horizon],
                model,
                f"{sides[0]['observations'].sum():,}",
                " and ".join(str(side["exceedances"].sum()) for side in sides),
                f"{sides[0]['expected'].sum():.1f}",
                *(f"{(rows[test] < 0.05).sum()} of {len(rows)}" for test in TESTS),
                f"**{loss}**" if model == best else loss,
            ])  # fmt: skip
    return format_table(heads, table)


def distribution_table(backtest: Backtest, names: dict[int, str]) -> str:
    """Log score, symbols with PITs that are not uniform, and p-value in the model confidence set."""
    scores = risk.log_scores(backtest)
    heads, rows = ["horizon", "model", "log score", "PITs not uniform", "p in the model confidence set"], []
    for horizon in backtest.horizons:
        losses = risk.pinball_by_date(backtest, horizon)
        included = risk.model_confidence_set(losses, block=2 * horizon)
        for model in backtest.quantiles:
            pits = [one.p_value < 0.05 for one in risk.pit_histograms(backtest, model) if one.horizon == horizon]
            p = f"{included.p_values[model]:.2f}"
            score = f"{scores.loc[model, horizon]:.3f}"
            rows.append([
                names[horizon],
                model,
                f"**{score}**" if scores[horizon].idxmax() == model else score,
                f"{sum(pits)} of {len(pits)}",
                f"**{p}**" if model in included.included else p,
            ])  # fmt: skip
    return format_table(heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder with daily.csv.gz and term_structure.csv.gz")
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are replaced")
    arguments = parser.parse_args()
    prices = futures(arguments.folder).between("2000-01-01", f"{LAST}-12-31")
    backtest = tc.backtest(prices, first_year=FIRST)
    names = {horizon: calendar(prices.dates).name(horizon) for horizon in backtest.horizons}
    note = environment(f"{len(prices.symbols)} futures with their curves, {FIRST} to {LAST}")
    tables = {
        "tails": f"{tail_table(backtest, names)}\n\n{note}",
        "distribution": distribution_table(backtest, names),
    }
    for name, table in tables.items():
        print(table)
        if arguments.page:
            replace_table(arguments.page, name, table)


if __name__ == "__main__":
    main()
