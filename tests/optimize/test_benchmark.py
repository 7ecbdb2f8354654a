"""pipeline and benchmark_table: every variant is measured on the same prices."""

import math

import pytest

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import benchmark_inputs, benchmark_table, pipeline, summarize_benchmark
from torchcommodity.training import ModelInputs


def test_benchmark_table_measures_every_variant_of_the_pipeline(forecaster: Forecaster, inputs: ModelInputs) -> None:
    pytest.importorskip("torchao")
    start = len(inputs.prices) - 120
    example = benchmark_inputs(inputs, 150, 1, 21)
    variants = pipeline(forecaster, inputs.before(start), example, epochs=1, compiled=False)
    table = benchmark_table(variants, inputs, start, rows=150, batch_size=3, calls=5, batch_calls=2)
    rows = {row.variant: row for row in table}
    assert list(rows) == list(variants)
    assert rows["last row only"].crps == rows["original"].crps
    assert math.isnan(rows["last row only"].dm_p[0])  # the same forecasts
    assert rows["combined"].size.bytes < rows["original"].size.bytes
    assert rows["no network"].size.parameters == 0
    assert "goal 1/4" in summarize_benchmark(table)
    with pytest.raises(ValueError, match="pipeline: forecaster must have a network; got model='HarGarch'"):
        pipeline(variants["no network"].forecaster, inputs, example)
