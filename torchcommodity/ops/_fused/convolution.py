"""Convolutions over one or two axes: argument checks, and calls of ATen with different padding on both sides."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit.arguments import check_integer, raise_invalid

ConvolutionSize = int | Sequence[int]  # one for all axes, or one per axis
Settings = tuple[list[int], list[int], list[int], int]  # stride, padding before and after each axis, dilation, groups


def convolution_settings(
    operator: str,
    x: Tensor,
    weight: Tensor,
    stride: ConvolutionSize,
    padding: ConvolutionSize | str,
    dilation: ConvolutionSize,
    groups: int,
) -> tuple[Settings, tuple[int, ...]]:
    """Checked settings with one value per axis, and two for `padding`; and the shape of the product."""
    if x.dim() not in (3, 4) or weight.dim() != x.dim():
        expected = "x must be (B, C, T) with weight (D, C, K), or (B, C, H, W) with (D, C, K, L)"
        raise_invalid(operator, expected, x=x, weight=weight)
    check_integer(operator, 1, groups=groups)
    if weight.shape[0] % groups or weight.shape[1] * groups != x.shape[1]:
        expected = "weight must be (D, C / groups, ...) with D a multiple of groups"
        raise_invalid(operator, expected, groups=groups, x=x, weight=weight)
    strides, dilations = _per_axis(operator, 1, x, stride=stride), _per_axis(operator, 1, x, dilation=dilation)
    if isinstance(padding, str):
        sides = _padding_mode(operator, padding, x, weight, strides, dilations)
    else:
        sides = [size for size in _per_axis(operator, 0, x, padding=padding) for _ in range(2)]
    shape = product_shape(x, weight, strides, sides, dilations)
    if min(shape[2:]) < 1:
        expected = "the kernel must fit in the padded input"
        raise_invalid(operator, expected, padding=padding, dilation=dilation, x=x, weight=weight)
    return (strides, sides, dilations, groups), shape


def _per_axis(operator: str, minimum: int, x: Tensor, **setting: ConvolutionSize) -> list[int]:
    """One int for each spatial axis."""
    axes, [(name, value)] = x.dim() - 2, setting.items()
    sizes = [value] * axes if isinstance(value, int) else list(value)
    if len(sizes) != axes:
        raise_invalid(operator, f"{name} must be an int or a sequence of {axes}", **setting)
    for size in sizes:
        check_integer(operator, minimum, **{name: size})
    return sizes


def _padding_mode(
    operator: str, padding: str, x: Tensor, weight: Tensor, stride: list[int], dilation: list[int]
) -> list[int]:
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if padding == "valid":
        return [0] * (2 * len(reach))
    if padding == "same" and max(stride) == 1:
        return [side for r in reach for side in (r // 2, r - r // 2)]
    if padding == "causal" and len(reach) == 1:
        return [reach[0], 0]
    expected = 'padding must be an int or one per axis, "valid", "same" with stride 1, or "causal" with one axis'
    return raise_invalid(operator, expected, padding=padding, stride=stride, x=x)


def product_shape(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int]
) -> tuple[int, ...]:
    lengths = [n + before + after for n, before, after in zip(x.shape[2:], padding[::2], padding[1::2])]
    windows = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:])]
    return (x.shape[0], weight.shape[0], *[(n - w) // s + 1 for n, w, s in zip(lengths, windows, stride)])


def _symmetric_padding(x: Tensor, padding: list[int]) -> tuple[Tensor, list[int]]:
    """ATen pads both sides equally; where they differ, pad x here and return zeros."""
    if padding[::2] == padding[1::2]:
        return x, padding[::2]
    from_last = [side for axis in range(len(padding) - 2, -1, -2) for side in padding[axis : axis + 2]]
    return F.pad(x, from_last), [0] * (len(padding) // 2)


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    x, padding = _symmetric_padding(x, padding)
    return torch.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)


def convolve_by_taps(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """Convolution as one matrix product per kernel position, since onnxruntime has no float64 convolution."""
    shape = product_shape(x, weight, stride, padding, dilation)
    x = F.pad(x, [side for axis in range(len(padding) - 2, -1, -2) for side in padding[axis : axis + 2]])
    blocks, products = weight.unflatten(0, (groups, -1)), list[Tensor]()
    for tap in itertools.product(*map(range, weight.shape[2:])):
        starts = [d * k for d, k in zip(dilation, tap)]
        window = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, shape[2:], stride)]
        index = (slice(None), slice(None), *window)
        inputs = x[index]
        products.append(blocks.flatten(3)[..., len(products)] @ inputs.unflatten(1, (groups, -1)).flatten(3))
    z: Tensor = torch.stack(products).sum(0).flatten(1, 2).unflatten(-1, shape[2:])
    return z


def convolve_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    needs_input_grad: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of x and weight, None where it is not needed."""
    padded, sides = _symmetric_padding(x, padding)
    needs = [*needs_input_grad, False]
    if not any(needs):
        return None, None
    d_x, d_weight, _ = torch.ops.aten.convolution_backward(
        grad, padded, weight, None, stride, sides, dilation, False, [0] * len(stride), groups, needs
    )
    if padded is not x and d_x is not None:
        for axis, length in enumerate(x.shape[2:]):
            d_x = d_x.narrow(axis + 2, padding[2 * axis], length)
    return d_x, d_weight
