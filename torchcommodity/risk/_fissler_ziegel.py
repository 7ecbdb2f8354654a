"""Joint score of value at risk and expected shortfall."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_tensor, raise_invalid
from torchcommodity.risk._series import check_level


def fissler_ziegel_loss(
    returns: Tensor,  # (...)
    value_at_risk: Tensor,  # (...)
    expected_shortfall: Tensor,  # (...)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Fissler and Ziegel's joint loss of VaR and ES, in the zero-degree form FZ0; lower is better.

    L = max(-r - VaR, 0) / ((1 - level) ES) + VaR / ES + ln ES - 1, with losses positive. ES has no loss of its own, but
    VaR and ES together do: the mean of L is smallest for the true pair, where it is E ln ES. Differences of L do not
    depend on the unit of the returns. Compare models by their means, with `model_confidence_set` or a Diebold-Mariano
    test.

    Args:
        returns: realized returns or P&L.
        value_at_risk: forecasts, positive for a loss.
        expected_shortfall: forecasts, positive. NaN where one of the three is NaN.
        level: confidence level of the forecasts, in (0, 1).

    Returns:
        Loss of each observation; differentiable.

    Raises:
        ValueError: shapes that do not broadcast, an expected shortfall that is not positive, or a level outside (0, 1).

    References:
        Fissler, Ziegel (2016). Higher order elicitability and Osband's principle. Annals of Statistics 44(4).
        doi:10.1214/16-AOS1439.
        Patton, Ziegel, Chen (2019). Dynamic semiparametric models for expected shortfall (and Value-at-Risk).
        J. Econometrics 211(2). doi:10.1016/j.jeconom.2018.10.008, eq. 6.

    Example:
        >>> returns = torch.tensor([0.01, -0.05])
        >>> fissler_ziegel_loss(returns, torch.tensor(0.03), torch.tensor(0.04))
        tensor([-3.4689,  6.5311])
    """
    check_level("fissler_ziegel_loss", level)
    tensors = {"returns": returns, "value_at_risk": value_at_risk, "expected_shortfall": expected_shortfall}
    check_tensor("fissler_ziegel_loss", **tensors)
    try:
        torch.broadcast_shapes(*(x.shape for x in tensors.values()))
    except RuntimeError:
        raise_invalid("fissler_ziegel_loss", f"{', '.join(tensors)} must broadcast", **tensors)
    if bool((expected_shortfall <= 0).any()):
        smallest = expected_shortfall[expected_shortfall <= 0][0].item()
        rule = "expected_shortfall must be positive"
        raise_invalid("fissler_ziegel_loss", rule, expected_shortfall=smallest)
    excess = (-returns - value_at_risk).clamp(min=0) / (1 - level)
    loss = (excess + value_at_risk) / expected_shortfall + expected_shortfall.log() - 1
    return torch.where(returns.isnan(), torch.nan, loss)
