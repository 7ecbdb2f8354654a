"""Responses to predict requests, by Vertex AI's contract for custom containers: their JSON schema and their bytes."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_core import to_json

from torchcommodity.serve.http._messages import ServedArtifact


class PriceFinding(BaseModel):
    """Doubtful prices; the forecast is made from them as they are."""

    kind: str = Field(description="Such as jump, decimal slip, swapped columns, frozen, gap, old prices")
    symbol: str | None = Field(description="Symbol concerned; null for a whole row")
    date: str | None = Field(description="Date of the (first) occurrence; null for a whole series")
    value: str = Field(description="The prices, and what they are compared with")
    count: int = Field(description="Number of occurrences")


class Prediction(BaseModel):
    """Forecast quantiles of one instance."""

    symbols: list[str]
    units: list[str] = Field(description="Price unit per symbol; empty if unknown")
    origins: list[str | None] = Field(description="Forecast origin per symbol: the date of its last positive price")
    last: list[float | None] = Field(description="Last positive price per symbol")
    horizons: list[int] = Field(description="Horizons in rows ahead")
    levels: list[float] = Field(description="Quantile levels")
    quantity: Literal["price", "log_return"]
    quantiles: list[list[list[float | None]]] = Field(
        description="Quantiles by horizon, symbol and level; null if there is no forecast"
    )
    notes: list[str] = Field(
        description="Symbols without a forecast, with the reason; symbols whose prices are all equal; all findings"
    )
    findings: list[PriceFinding] = Field(description="What is doubtful about the prices")


class ArtifactInfo(BaseModel):
    """Artifact that made the predictions."""

    sha256: str
    version: str = Field(description="Version of torchcommodity that wrote the artifact")
    model: str
    trained_through: str = Field(description="Last date of the training prices")


class PredictResponse(BaseModel):
    """Predictions in the order of the instances."""

    predictions: list[Prediction]
    metadata: ArtifactInfo


class ErrorDetail(BaseModel):
    """Cause of an error."""

    code: int = Field(description="HTTP status code")
    status: str = Field(description="HTTP status phrase")
    message: str
    field: str | None = Field(description="Invalid field of the request, such as instances[3].prices[17][0]")


class ErrorResponse(BaseModel):
    """Error response of any route."""

    error: ErrorDetail


def encode_response(predictions: Sequence[bytes], metadata: ServedArtifact) -> bytes:
    """Join predictions that the workers have encoded as JSON."""
    return b'{"predictions":[%b],"metadata":%b}' % (b",".join(predictions), to_json(artifact_info(metadata)))


def artifact_info(metadata: ServedArtifact) -> dict[str, str]:
    """Identity of the artifact: checksum, version, model and last training date."""
    return {
        "sha256": metadata.sha256,
        "version": metadata.version,
        "model": metadata.model,
        "trained_through": metadata.trained_through,
    }
