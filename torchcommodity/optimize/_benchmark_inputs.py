"""Model inputs for measurements: the last rows of real prices, repeated along the batch axis."""

from typing import Any

from torch import Tensor

from torchcommodity.training import ModelInputs

BatchInputs = tuple[Tensor, Tensor | None, Tensor | None]  # prices (B, T, N), rolls (B, T + A, N), curve (B, T, N, C)


def benchmark_inputs(inputs: ModelInputs, rows: int, batch_size: int, ahead: int) -> BatchInputs:
    """Repeat the last `rows` rows of prices `batch_size` times.

    Args:
        inputs: result of `training.model_inputs`.
        rows: T, rows of each forecast.
        batch_size: B, forecasts per call.
        ahead: A, rows of the roll calendar after the last price; the longest horizon.

    Returns:
        Prices, rolls and curve with a batch axis, the arguments of a model of `models.MODELS`.

    Raises:
        ValueError: `rows` exceeds the number of prices, or an argument is below 1.

    Example:
        >>> from torchcommodity import data
        >>> from torchcommodity.training import model_inputs
        >>> prices, rolls, curve = benchmark_inputs(model_inputs(data.embedded(), 126), 500, 8, 126)
        >>> prices.shape, rolls, curve
        (torch.Size([8, 500, 3]), None, None)
    """
    total = len(inputs.prices)
    if not 1 <= rows <= total or batch_size < 1:
        got = f"rows={rows}, batch_size={batch_size}"
        raise ValueError(f"benchmark_inputs: rows must be in [1, {total}] and batch_size at least 1; got {got}")

    def repeat(x: Tensor | None, start: int, stop: int | None = None) -> Any:
        return None if x is None else x[start:stop].repeat(batch_size, *(1,) * x.dim())

    start = total - rows
    return repeat(inputs.prices, start), repeat(inputs.rolls, start, total + ahead), repeat(inputs.curve, start)
