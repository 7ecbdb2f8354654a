"""Attention across assets, row by row."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.types import Device

from torch_opkit.arguments import check_integer, check_tensor, raise_invalid


class CrossAssetAttention(nn.Module):
    """Multi-head attention over the asset axis, row by row; parameters and results as in `torch.nn.MultiheadAttention`.

    For each head, with q, k, v linear in x and d = E / heads:

        y_i = sum_j softmax_j(q_i . k_j / sqrt(d) + m_ij) v_j,  j over the assets of the row that are not missing

    with m the mask of `forward`, by default zero. Its meaning is that of `F.scaled_dot_product_attention`: **True takes
    part**. `torch.nn.MultiheadAttention` says the opposite; its `attn_mask` is `~mask` here.

    Args:
        embed_dim: E, the number of features of an asset, a multiple of `num_heads`.
        num_heads: number of heads.
        dropout: probability that an attention weight is dropped in training.
        bias: whether the projections have biases.

    Shape:
        x (..., N, E) with any leading axes, such as (B, T) -> (..., N, E). An asset with a NaN among its features is
        missing in that row: it is not attended to, its output is zero and no gradient reaches it. An asset that may
        attend to no asset, because they are missing or masked, has the output zero, without NaN in its gradients.

    Causal: rows are independent. Permuting the assets, in x and in the mask, permutes the output. `load_state_dict`
    accepts the state of `torch.nn.MultiheadAttention(E, num_heads)`, and vice versa.

    Raises:
        ValueError: E is not a multiple of `num_heads`, dropout is outside [0, 1], x is not (..., N, E), or the mask
            does not broadcast to (..., heads, N, N).
        TypeError: x has another dtype than the weights, outside autocast, or the mask is neither bool nor
            floating-point.

    References:
        Vaswani et al. (2017). Attention is all you need. arXiv:1706.03762.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> x = torch.randn(4, 60, 5, 8)  # batch, time, assets, features
        >>> x[:, 3, 2] = torch.nan  # one asset has no price
        >>> y = nn.CrossAssetAttention(8, num_heads=2)(x)
        >>> y.shape, bool(y[:, 3, 2].eq(0).all())
        (torch.Size([4, 60, 5, 8]), True)
        >>> energy = torch.tensor([True, True, True, False, False])  # crude oil, gasoline, gas; gold, wheat
        >>> same_sector = energy[:, None] == energy  # True: j takes part in the attention of i
        >>> nn.CrossAssetAttention(8, num_heads=2)(x, mask=same_sector).shape
        torch.Size([4, 60, 5, 8])
    """

    in_proj_bias: nn.Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("CrossAssetAttention", 1, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            sizes = {"embed_dim": embed_dim, "num_heads": num_heads}
            raise_invalid("CrossAssetAttention", "embed_dim must be a multiple of num_heads", **sizes)
        if not 0 <= dropout <= 1:
            raise_invalid("CrossAssetAttention", "dropout must be in [0, 1]", dropout=dropout)
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim, **factory))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim, **factory)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias, **factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights and zero biases, as in torch's layer."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # (..., N, E) -> (..., N, E)
        """Attend over the assets of each row.

        Args:
            x: features (..., N, E); an asset with a NaN is missing.
            mask: broadcasts to (..., heads, N, N), such as (N, N), (heads, N, N), or (B, T, 1, N, N) for one per row.
                Bool: True where asset i attends to asset j. Floating-point: added to the scores; -inf excludes j.
        """
        self._check_input(x)
        rows = x.reshape(-1, *x.shape[-2:])  # (M, N, E): with more axes, Inductor's attention misreads the mask
        missing = rows.isnan().any(-1, keepdim=True)  # (M, N, 1)
        projected = F.linear(rows.masked_fill(missing, 0.0), self.in_proj_weight, self.in_proj_bias)
        parts = projected.unflatten(-1, (3, self.num_heads, -1)).unbind(-3)
        q, k, v = (part.transpose(1, 2) for part in parts)  # (M, heads, N, d) each
        scores, empty = _combine(~missing.mT.unsqueeze(1), self._flatten_mask(x, mask), q.dtype)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, scores, dropout).masked_fill(empty, 0.0)  # (M, heads, N, d)
        out = self.out_proj(y.transpose(1, 2).flatten(2)).masked_fill(missing | empty.all(1), 0.0)
        return out.reshape(x.shape)  # type: ignore[no-any-return]

    def _check_input(self, x: Tensor) -> None:
        check_tensor("CrossAssetAttention", x=x)
        if x.dim() < 2 or x.shape[-1] != self.embed_dim:
            raise_invalid("CrossAssetAttention", f"x must be (..., N, E) with E = {self.embed_dim}", x=x)
        dtype = self.in_proj_weight.dtype
        if x.dtype != dtype and (x.is_meta or not torch.is_autocast_enabled(x.device.type)):
            raise_invalid("CrossAssetAttention", f"x must be {dtype}, as the weights", TypeError, dtype=x.dtype, x=x)

    def _flatten_mask(self, x: Tensor, mask: Tensor | None) -> Tensor | None:
        """A mask that broadcasts to (M, heads, N, N)."""
        if mask is None:
            return None
        if not isinstance(mask, Tensor):
            raise_invalid("CrossAssetAttention", "mask must be a Tensor or None", TypeError, mask=type(mask).__name__)
        if mask.dtype != torch.bool and not mask.is_floating_point():
            expected = (
                "mask must be bool, True where asset i attends to asset j, or floating-point, added to the scores"
            )
            raise_invalid("CrossAssetAttention", expected, TypeError, dtype=mask.dtype, mask=mask)
        full = (*x.shape[:-2], self.num_heads, x.shape[-2], x.shape[-2])
        pairs = zip(reversed(mask.shape), reversed(full))
        if mask.dim() > len(full) or not all(size in (1, whole) for size, whole in pairs):
            expected = f"mask must broadcast to (..., heads, N, N) = {full}"
            raise_invalid("CrossAssetAttention", expected, mask=mask, x=x)
        lead = mask.dim() - 3
        return mask.expand(*full[:-3], *mask.shape[-3:]).flatten(0, -4) if lead > 0 else mask

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, dropout={self.dropout}, bias={self.in_proj_bias is not None}"


def _combine(present: Tensor, mask: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The mask over the assets that are present, and where no asset is left.

    There it is 0 or True everywhere: a softmax over an empty set would be NaN, in the gradients too.
    """
    if mask is None or mask.dtype == torch.bool:
        allowed = present if mask is None else present & mask
        empty = ~allowed.any(-1, keepdim=True)
        return allowed | empty, empty
    scores = mask.to(dtype).masked_fill(~present, -torch.inf)
    empty = scores.eq(-torch.inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0), empty
