"""Scalers with scikit-learn's words, as Modules: they are saved, moved and exported with the network they feed."""

import math
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torch_opkit import widest
from torch_opkit.arguments import check_panel, raise_invalid

Self = TypeVar("Self", bound="Scaler")  # typing.Self is in Python from 3.11 on


class Scaler(nn.Module, ABC):
    """(x - center) / scale for each feature, with statistics of the rows that `fit` was given."""

    center: Tensor  # (F,), or (0,) before `fit`
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("center", "scale"):
            self.register_buffer(name, torch.empty(0))

    @abstractmethod
    def _statistics(self, rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:  # (R, F), (F,), (F,)
        """Center and scale `(F,)` of rows with NaN, whose smallest and largest values are `low` and `high`."""

    @torch.no_grad()
    def fit(self: Self, x: Tensor) -> Self:  # (..., F) -> self
        """Compute the statistics of x and return self; NaN is ignored.

        The statistics know every row of x: give the training rows alone. They have the dtype (float32 for half
        precision) and the device of x, and are computed in the widest type of the device.
        """
        name = f"{type(self).__name__}.fit"
        check_panel(name, x=x)
        if not x.shape[-1]:
            raise_invalid(name, "x must have at least one feature", x=x)
        rows = widest(x.detach().as_subclass(Tensor)).flatten(0, -2)
        known = ~rows.isnan()
        if rows.isinf().any():
            raise_invalid(name, "x must be finite or NaN", x=x, infinite=int(rows.isinf().sum()))
        if not (counts := known.sum(0)).all():
            empty = (counts == 0).nonzero().flatten().tolist()
            raise_invalid(name, "each feature must have a value that is not NaN", x=x, features_without=empty)
        low, high = torch.where(known, rows, torch.inf).amin(0), torch.where(known, rows, -torch.inf).amax(0)
        center, scale = self._statistics(rows, low, high)
        dtype = torch.promote_types(x.dtype, torch.float32)
        center, scale = center.to(dtype), scale.to(dtype)
        scale = torch.where((high - low) / scale <= torch.finfo(dtype).max, scale, 1.0)  # also where it is 0
        if not (center.isfinite() & scale.isfinite()).all():
            raise_invalid(name, f"the range of each feature must be finite in {dtype}", x=x)
        self.center, self.scale = center, scale
        return self

    def transform(self, x: Tensor) -> Tensor:  # (..., F) -> (..., F)
        """(x - center) / scale, in the dtype of x; NaN stays NaN."""
        self._check("transform", x)
        return ((x - self.center) / self.scale).to(x.dtype)

    def inverse_transform(self, x: Tensor) -> Tensor:  # (..., F) -> (..., F)
        """x scale + center, in the dtype of x; NaN stays NaN."""
        self._check("inverse_transform", x)
        return (x * self.scale + self.center).to(x.dtype)

    def fit_transform(self, x: Tensor) -> Tensor:  # (..., F) -> (..., F)
        """`fit(x).transform(x)`."""
        return self.fit(x).transform(x)

    def forward(self, x: Tensor) -> Tensor:  # (..., F) -> (..., F)
        """`transform(x)`."""
        return self.transform(x)

    def extra_repr(self) -> str:
        return f"features={len(self.scale)}" if len(self.scale) else "not fitted"

    def _check(self, method: str, x: Tensor) -> None:
        name, features = f"{type(self).__name__}.{method}", len(self.scale)
        if not isinstance(x, Tensor) or not x.is_floating_point():
            got = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise_invalid(name, "x must be a floating-point Tensor", TypeError, x=got)
        if not features:
            raise_invalid(name, "the scaler must be fitted first, by fit(x) or load_state_dict", x=x)
        if x.dim() == 0 or x.shape[-1] != features:
            raise_invalid(name, f"x must be (..., {features}), with the features of fit", x=x)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Before `fit`, take number and dtype of the features from the state."""
        for name, buffer in list(self.named_buffers()):
            if not buffer.numel() and prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


class StandardScaler(Scaler):
    """Standardize each feature: (x - mean) / standard deviation, of the rows that `fit` was given.

    scikit-learn's `StandardScaler` as a Module: `fit`, `transform`, `inverse_transform`, `fit_transform`; `forward` is
    `transform`. The deviation is the biased one (ddof = 0), and 1 for a constant feature. The statistics are buffers,
    `center` and `scale`, so they are saved, moved and exported with the network.

    Shape:
        fit (..., F), any leading axes -> self; transform and inverse_transform (..., F) -> (..., F), in the dtype of x
        and in any unit. `fit` ignores NaN, `transform` keeps it. Differentiable in x.

    Raises:
        TypeError: x is not a floating-point Tensor.
        ValueError: `fit` on an infinite value or on a feature without a value; another number of features than in
            `fit`; `transform` before `fit`.

    References:
        Pedregosa et al. (2011). Scikit-learn: Machine Learning in Python. JMLR 12.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> prices = torch.tensor([[50.0, 2.0], [60.0, torch.nan], [70.0, 4.0]])
        >>> scaler = nn.StandardScaler().fit(prices[:2])  # the past
        >>> scaler.transform(prices)
        tensor([[-1.,  0.],
                [ 1., nan],
                [ 3.,  2.]])
    """

    def _statistics(self, rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        offset = rows - low  # a large level does not cost digits, and a constant has no deviation
        mean = _mean(offset)
        return low + mean, _mean((offset - mean).square()).sqrt()


class MinMaxScaler(Scaler):
    """Map the smallest and largest value of each feature to `feature_range`, of the rows that `fit` was given.

    scikit-learn's `MinMaxScaler` as a Module: a + (b - a) (x - min) / (max - min). A constant feature maps to a. Later
    values may lie outside the range; nothing is clipped. Methods, shapes, NaN rule and errors are those of
    `StandardScaler`.

    Args:
        feature_range: (a, b) with a < b, both finite.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> prices = torch.tensor([[50.0], [60.0], [70.0]])
        >>> nn.MinMaxScaler().fit(prices[:2]).transform(prices).flatten()  # fitted on the past
        tensor([0., 1., 2.])
    """

    def __init__(self, feature_range: tuple[float, float] = (0, 1)) -> None:
        super().__init__()
        if len(feature_range) != 2 or not -math.inf < feature_range[0] < feature_range[1] < math.inf:
            rule = "feature_range must be (a, b) with a < b, both finite"
            raise_invalid("MinMaxScaler", rule, feature_range=feature_range)
        self.feature_range = feature_range

    def _statistics(self, rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        bottom, top = self.feature_range
        scale = (high - low) / (top - bottom)
        return low - bottom * torch.where(scale > 0, scale, 1.0), scale

    def extra_repr(self) -> str:
        return f"feature_range={self.feature_range}, {super().extra_repr()}"


class RobustScaler(Scaler):
    """(x - median) / (75 % quantile - 25 % quantile) for each feature, of the rows that `fit` was given.

    scikit-learn's `RobustScaler` as a Module: a few extreme prices, such as those of April 2020, do not move its
    statistics. Quantiles are interpolated linearly. The scale is 1 where half of the values are equal, or so close to
    each other that a value divided by it is not finite. Methods, shapes, NaN rule and errors are those of
    `StandardScaler`.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> prices = torch.tensor([[18.0], [19.0], [20.0], [21.0], [-37.0]])
        >>> nn.RobustScaler().fit_transform(prices).flatten()
        tensor([ -0.5000,   0.0000,   0.5000,   1.0000, -28.0000])
    """

    def _statistics(self, rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        ordered, last = rows.sort(0).values, (~rows.isnan()).sum(0) - 1  # NaN is sorted to the end
        lower, median, upper = (_at_rank(ordered, last * share) for share in (0.25, 0.5, 0.75))
        return median, upper - lower


def _at_rank(ordered: Tensor, rank: Tensor) -> Tensor:  # (R, F), (F,) -> (F,)
    """Value at a rank, interpolated linearly; `torch.nanquantile` takes at most 16 million values."""
    below, above = (ordered.gather(0, row.long().unsqueeze(0)).squeeze(0) for row in (rank.floor(), rank.ceil()))
    return below.lerp(above, (rank - rank.floor()).to(ordered.dtype))


def _mean(x: Tensor) -> Tensor:  # (R, F) -> (F,)
    """Mean of the values that are not NaN, with the same bits for any number of threads."""
    return F.pad(x, (0, 1)).nanmean(0)[:-1]  # a single column would be split among the threads
