"""A convolution of one axis or two: its settings, checked at the door, and the calls of ATen's."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.opkit.arguments import check_integer, raise_invalid

ConvolutionSize = int | Sequence[int]
Settings = tuple[list[int], list[int], list[int], int]  # stride, zeros before and after each axis, dilation, groups


def settings_of(
    operator: str,
    x: Tensor,
    weight: Tensor,
    stride: ConvolutionSize,
    padding: ConvolutionSize | str,
    dilation: ConvolutionSize,
    groups: int,
) -> Settings:
    """Checked, each in the form that ATen takes but for `padding`."""
    if x.dim() not in (3, 4) or weight.dim() != x.dim():
        words = "x must be (B, C, T) with weight (D, C, K), or (B, C, H, W) with (D, C, K, L)"
        raise_invalid(operator, words, x=x, weight=weight)
    check_integer(operator, 1, groups=groups)
    if weight.shape[0] % groups or weight.shape[1] * groups != x.shape[1]:
        words = "weight must be (D, C / groups, ...), D a multiple of groups"
        raise_invalid(operator, words, groups=groups, x=x, weight=weight)
    strides, dilations = _each(operator, 1, x, stride=stride), _each(operator, 1, x, dilation=dilation)
    if isinstance(padding, str):
        around = _named(operator, padding, x, weight, strides, dilations)
    else:
        around = [side for side in _each(operator, 0, x, padding=padding) for _ in range(2)]
    if min(product_shape(x, weight, strides, around, dilations)[2:]) < 1:
        words = "the window must fit in the padded input"
        raise_invalid(operator, words, padding=padding, dilation=dilation, x=x, weight=weight)
    return strides, around, dilations, groups


def _each(operator: str, least: int, x: Tensor, **setting: ConvolutionSize) -> list[int]:
    """One int for each axis of positions."""
    axes, [(name, value)] = x.dim() - 2, setting.items()
    sizes = [value] * axes if isinstance(value, int) else list(value)
    if len(sizes) != axes:
        raise_invalid(operator, f"{name} must be an int, or {axes}", **setting)
    for size in sizes:
        check_integer(operator, least, **{name: size})
    return sizes


def _named(operator: str, padding: str, x: Tensor, weight: Tensor, stride: list[int], dilation: list[int]) -> list[int]:
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if padding == "valid":
        return [0] * (2 * len(reach))
    if padding == "same" and max(stride) == 1:
        return [side for r in reach for side in (r // 2, r - r // 2)]
    if padding == "causal" and len(reach) == 1:
        return [reach[0], 0]
    words = 'padding must be numbers, "valid", "same" with stride 1, or "causal" with one axis'
    return raise_invalid(operator, words, padding=padding, stride=stride, x=x)


def product_shape(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int]
) -> tuple[int, ...]:
    lengths = [n + before + after for n, before, after in zip(x.shape[2:], padding[::2], padding[1::2])]
    windows = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:])]
    return (x.shape[0], weight.shape[0], *[(n - w) // s + 1 for n, w, s in zip(lengths, windows, stride)])


def _alike(x: Tensor, padding: list[int]) -> tuple[Tensor, list[int]]:
    """ATen pads both sides alike: where they differ, x is padded here."""
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
    x, both = _alike(x, padding)
    return torch.convolution(x, weight, bias, stride, both, dilation, False, [0] * len(stride), groups)


def convolve_by_taps(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """The same by one matrix product for each place in the window: onnxruntime has no convolution in float64."""
    shape = product_shape(x, weight, stride, padding, dilation)
    x = F.pad(x, [side for axis in range(len(padding) - 2, -1, -2) for side in padding[axis : axis + 2]])
    blocks, taps, whole = weight.unflatten(0, (groups, -1)), list[Tensor](), (slice(None), slice(None))
    for tap in itertools.product(*map(range, weight.shape[2:])):
        firsts = [d * k for d, k in zip(dilation, tap)]
        seen = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(firsts, shape[2:], stride))
        at_tap = x[whole + seen]
        taps.append(blocks.flatten(3)[..., len(taps)] @ at_tap.unflatten(1, (groups, -1)).flatten(3))
    z: Tensor = torch.stack(taps).sum(0).flatten(1, 2).unflatten(-1, shape[2:])
    return z


def convolve_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of x and weight."""
    padded, both = _alike(x, padding)
    d_x, d_weight, _ = torch.ops.aten.convolution_backward(
        grad, padded, weight, None, stride, both, dilation, False, [0] * len(stride), groups, [True, True, False]
    )
    if padded is not x:
        for axis, length in enumerate(x.shape[2:]):
            d_x = d_x.narrow(axis + 2, padding[2 * axis], length)
    return d_x, d_weight
