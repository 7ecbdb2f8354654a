"""Hooks of schemathesis: valid bodies also follow the rules that JSON Schema cannot express.

SCHEMATHESIS_HOOKS=tests.serve.http.fuzz_hooks schemathesis run http://127.0.0.1:8080/openapi.json --mode positive
"""

from typing import Any

import numpy as np
import schemathesis

LAST = np.datetime64("2020-12")


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_body(context: Any, body: Any) -> Any:
    """Ascending dates of the artifact's frequency, one row or price per date."""
    instance_schema = context.operation.schema.raw_schema["components"]["schemas"]["Instance"]
    is_monthly = "monthly" in instance_schema["properties"]["dates"]["description"]
    for instance in body["instances"]:
        prices = instance["prices"]
        rows = min(map(len, prices.values())) if isinstance(prices, dict) else len(prices)
        if isinstance(prices, dict):
            instance["prices"] = {symbol: column[:rows] for symbol, column in prices.items()}
        steps = np.arange(1 - rows, 1)
        dates = (LAST + steps).astype("datetime64[D]") if is_monthly else np.busday_offset(LAST, steps)
        instance["dates"] = list(map(str, dates))
    return body
