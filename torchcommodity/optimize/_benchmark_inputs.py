"""Model inputs for measurements: the last rows of real prices, repeated along the batch axis."""

from torch import Tensor

from torchcommodity.training import ModelInputs

BatchInputs = tuple[Tensor | None, ...]  # of `ModelInputs.batch`, each with a batch axis; prices (B, T, N) first


def benchmark_inputs(inputs: ModelInputs, rows: int, batch_size: int, ahead: int) -> BatchInputs:
    """Repeat the last `rows` rows of prices `batch_size` times.

    Args:
        inputs: result of `training.model_inputs`.
        rows: T, rows of each forecast.
        batch_size: B, forecasts per call.
        ahead: A, rows of the roll calendar after the last price; the longest horizon.

    Returns:
        The inputs with a batch axis, the arguments of a model of `models.MODELS`.

    Raises:
        ValueError: `rows` exceeds the number of prices, or an argument is below 1.

    Example:
        >>> from torchcommodity import data
        >>> from torchcommodity.training import model_inputs
        >>> benchmark_inputs(model_inputs(data.embedded(), 126), 500, 8, 126)[0].shape
        torch.Size([8, 500, 3])
    """
    total = len(inputs.prices)
    if not 1 <= rows <= total or batch_size < 1:
        got = f"rows={rows}, batch_size={batch_size}"
        raise ValueError(f"benchmark_inputs: rows must be in [1, {total}] and batch_size at least 1; got {got}")

    window = inputs.after(total - rows)
    if window.rolls is not None:
        window = window._replace(rolls=window.rolls[: rows + ahead])
    return tuple(None if x is None else x.expand(batch_size, *x.shape[1:]).contiguous() for x in window.batch())
