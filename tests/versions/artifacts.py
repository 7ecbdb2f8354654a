"""Read the pt2 files that other versions of torch wrote, and forecast with them."""

from typing import Any

import forecast
import part


def read() -> dict[str, Any]:
    """By file, its forecast, or the error."""
    from torchcommodity import export

    results: dict[str, Any] = {}
    for path in sorted(part.ARTIFACTS.glob("*.pt2")):
        try:
            results[path.stem] = forecast.quantiles(export.Artifact.load(path))
        except Exception as error:
            results[path.stem] = f"{type(error).__name__}: {error}"
    return {"files": results}


if __name__ == "__main__":
    part.run(read)
