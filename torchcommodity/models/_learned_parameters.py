"""The parameters of a model that mean something to a reader: half-lives, GARCH, thresholds."""

from torch import Tensor, nn


def learned_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Half-lives, GARCH parameters and thresholds that a model learns with its network, in their own units.

    Args:
        model: of `models.MODELS`, or any module whose layers are `nn.EwmVolatility`, `nn.GarchVariance`,
            `nn.Indicators`, `nn.CorrelationRegime`.

    Returns:
        copies by the layer's name and the parameter's, so that before and after a training can be compared. Empty for
        a model that has none. The GARCH parameters of `Har` are not among them: they are fitted, not trained.

    Example:
        >>> from torchcommodity.models import GarchLstm
        >>> learned_parameters(GarchLstm(1))["volatility.halflife"].flatten()
        tensor([ 5., 21., 63.])
    """
    found: dict[str, Tensor] = {}
    for name, layer in model.named_modules():
        values = layer.learned_parameters() if hasattr(layer, "learned_parameters") else {}
        found |= {f"{name}.{key}": value.clone() for key, value in values.items()}
    return found
