"""Interpretable parameters of a model: half-lives, GARCH parameters, thresholds."""

from torch import Tensor, nn


def learned_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Interpretable parameters that a model trains with its network, in their natural units.

    Args:
        model: a model of `models.MODELS`, or any module with layers `nn.EwmVolatility`, `nn.GarchVariance`,
            `nn.Indicators` or `nn.CorrelationRegime`.

    Returns:
        copies of half-lives (rows), GARCH parameters and thresholds by "layer.parameter", for comparison before and
        after training; empty for a model without such layers. The GARCH parameters of `Har` are calibrated, not
        trained, and not included.

    Example:
        >>> from torchcommodity.models import GarchLstm
        >>> learned_parameters(GarchLstm(1))["volatility.halflife"].flatten()
        tensor([ 5., 21., 63.])
    """
    parameters: dict[str, Tensor] = {}
    for name, layer in model.named_modules():
        values = layer.learned_parameters() if hasattr(layer, "learned_parameters") else {}
        parameters |= {f"{name}.{key}": value.clone() for key, value in values.items()}
    return parameters
