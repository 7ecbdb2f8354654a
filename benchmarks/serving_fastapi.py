"""Server that one writes with FastAPI over an artifact: `python benchmarks/serving_fastapi.py ARTIFACT PORT`.

It answers the request of `serving.py` with quantiles of the price. `serving_litserve.py` does the same with LitServe.
"""

import sys
from typing import Any

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from torchcommodity.export import Artifact

app = FastAPI()


class Instance(BaseModel):
    prices: list[list[float | None]]
    dates: list[str]


class Request(BaseModel):
    instances: list[Instance]


def predict_instance(artifact: Artifact, prices: Any, dates: list[str]) -> dict[str, Any]:
    """Quantiles (H, N, Q) of the price."""
    values = torch.tensor(np.array(prices, dtype=np.float64))
    days = torch.tensor(np.array(dates, dtype="datetime64[D]").astype(np.int64))
    quantiles = artifact(values[None], days[None])[0]
    last = torch.stack([column[column > 0][-1] for column in values.T])
    return {"quantiles": (last[None, :, None] * quantiles.exp()).tolist()}


@app.get("/health")
def health() -> str:
    return "ok"


@app.post("/predict")
def predict(request: Request) -> dict[str, Any]:
    instances = request.instances
    return {"predictions": [predict_instance(app.state.artifact, each.prices, each.dates) for each in instances]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    app.state.artifact = Artifact.load(sys.argv[1], trusted=True)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
