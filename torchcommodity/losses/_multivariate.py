"""Proper scores of joint forecasts that are samples: energy score and variogram score."""

import torch
from torch import Tensor

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity.losses._reduction import Reduction, reduce


def energy_score(
    samples: Tensor,  # (..., P, D)
    target: Tensor,  # (..., D)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Energy score of a joint forecast: E|X - y| - E|X - X'| / 2, with Euclidean norms over the components.

    The generalization of the CRPS to D components, which it is for D = 1. It is sensitive to margins and locations, and
    less to the dependence among components; see `variogram_score`. Bring the components to one scale before.

    Args:
        samples: P draws of the D components, in the unit of `target`. X and X' are all pairs of draws.
        target: realized components. Where one is NaN or infinite, the score is NaN with "none" and excluded from "mean"
            and "sum".
        reduction: "mean" over the known targets (NaN if there are none), "sum", or "none".

    Returns:
        score in the unit of `target`; lower is better. The samples of a missing target receive no gradient.

    Raises:
        TypeError: samples or target is not a Tensor.
        ValueError: shapes do not match, there is no sample, or reduction is unknown.

    References:
        Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, and estimation. JASA 102.
        doi:10.1198/016214506000001437, equation 22.

    Example:
        >>> energy_score(torch.tensor([[0.0, 0.0], [6.0, 8.0]]), torch.tensor([0.0, 0.0]))
        tensor(2.5000)
    """
    known, y = _known("energy_score", samples, target)
    to_target = torch.linalg.vector_norm(samples - y.unsqueeze(-2), dim=-1).mean(-1)
    among = torch.cdist(samples, samples, compute_mode="donot_use_mm_for_euclid_dist").mean((-2, -1))
    return reduce("energy_score", to_target - among / 2, known, reduction)


def variogram_score(
    samples: Tensor,  # (..., P, D)
    target: Tensor,  # (..., D)
    *,
    order: float = 0.5,
    weights: Tensor | None = None,  # (D, D)
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Variogram score: sum over pairs i, j of w_ij (|y_i - y_j|^p - E|X_i - X_j|^p)^2.

    Unlike the energy score it is sensitive to the dependence among the components, and not to a shift of them all.

    Args:
        samples: P draws of the D components, in the unit of `target`.
        target: realized components. Where one is NaN or infinite, the score is NaN with "none" and excluded from "mean"
            and "sum".
        order: p > 0; 0.5 discriminates well for heavy tails.
        weights: w_ij >= 0; default: all 1. The sum runs over ordered pairs, each pair twice.
        reduction: "mean" over the known targets (NaN if there are none), "sum", or "none".

    Returns:
        score in the unit of `target` to the power 2 p; lower is better. The samples of a missing target receive no
        gradient.

    Raises:
        TypeError: samples or target is not a Tensor.
        ValueError: shapes do not match, there is no sample, `order` is not positive, or reduction is unknown.

    References:
        Scheuerer, Hamill (2015). Variogram-based proper scoring rules for probabilistic forecasts of multivariate
        quantities. Monthly Weather Review 143(4). doi:10.1175/MWR-D-14-00269.1, equation 11.

    Example:
        >>> variogram_score(torch.tensor([[0.0, 1.0], [0.0, 4.0]]), torch.tensor([0.0, 9.0]))
        tensor(4.5000)
    """
    known, y = _known("variogram_score", samples, target)
    D = target.shape[-1]
    if not order > 0:
        raise_invalid("variogram_score", "order must be > 0", order=order)
    if weights is not None and weights.shape != (D, D):
        raise_invalid("variogram_score", "weights must be (D, D) for target (..., D)", weights=weights, target=target)
    # one component at a time: all pairs of P samples at once need D times the memory
    expected = torch.stack([_power(samples - samples[..., i : i + 1], order).mean(-2) for i in range(D)], -2)
    squared = (_power(y.unsqueeze(-1) - y.unsqueeze(-2), order) - expected).square()
    score = (squared if weights is None else weights * squared).sum((-2, -1))
    return reduce("variogram_score", score, known, reduction)


def _power(difference: Tensor, order: float) -> Tensor:
    """|difference|^order, with gradient zero at zero, where that of a root is infinite."""
    size = difference.abs()
    apart = size > 0
    return torch.where(apart, torch.where(apart, size, 1.0).pow(order), 0.0)


def _known(operation: str, samples: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:  # (...) bool, (..., D)
    """Which targets are known, and the target with zeros elsewhere."""
    check_tensor(operation, samples=samples, target=target)
    batch, D = target.shape[:-1], target.shape[-1:]
    if samples.dim() < 2 or target.dim() < 1 or (*samples.shape[:-2], *samples.shape[-1:]) != (*batch, *D):
        raise_invalid(operation, "samples must be (..., P, D) for target (..., D)", samples=samples, target=target)
    if samples.shape[-2] < 1:
        raise_invalid(operation, "samples must have at least one draw", samples=samples)
    known = torch.isfinite(target).all(-1)
    return known, torch.where(known.unsqueeze(-1), target, 0.0)
