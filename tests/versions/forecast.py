"""A forecast of embedded prices, as numbers to compare between versions, and the pt2 files that others read."""

from dataclasses import replace
from typing import Any

import part

LAST = "2018-12-31"


def fitted() -> dict[str, Any]:
    """Two forecasters: fitted as by default; and with a network, of random weights, as if it had been trained."""
    import torch

    from torchcommodity import data, forecast, training

    prices = data.embedded(["WTI", "BRENT"]).between("2012-01-01", LAST).with_contracts({"WTI": "CL"})
    config = training.FitConfig.for_frequency("daily", "har-lstm")
    network = forecast.fit(prices, replace(config, train=replace(config.train, epochs=0)))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in training.network_parameters(network.model):
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator).to(parameter))
    network.model.har.shrink.fill_(0.5)
    return {"har-garch": forecast.fit(prices), "har-lstm": network}


def quantiles(forecaster: Any) -> list[float]:
    """Quantiles of the log-returns from the last embedded rows, flat; a NaN is None."""
    from torchcommodity import data

    log_returns = forecaster.predict(data.embedded(["WTI", "BRENT"]).with_contracts({"WTI": "CL"})).log_returns
    return [None if value != value else value for value in log_returns.flatten().tolist()]


def write_forecasts() -> dict[str, Any]:
    from torchcommodity import export

    part.ARTIFACTS.mkdir(exist_ok=True)
    forecasters = fitted()
    for model, forecaster in forecasters.items():
        export.export(forecaster, part.ARTIFACTS / f"torch-{part.TORCH}.{model}.pt2")
    return {model: quantiles(forecaster) for model, forecaster in forecasters.items()}


if __name__ == "__main__":
    part.run(write_forecasts)
