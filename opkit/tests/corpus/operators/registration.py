"""Schemas, fake kernels, dispatch keys, and values that are read while an operator is traced."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, rand, randn


@fault("schema", samples=[(rand(3, 4), torch.zeros(1).double())])
@custom_op()
def increments_counter(x: Tensor, count: Tensor) -> Tensor:
    count += 1
    return x * 2


@fault("schema", samples=[(rand(3, 4), rand(3, 4, seed=1))])
@custom_op(mutates=("y",), fake=lambda x, y: torch.empty_like(x))
def declares_wrong_mutation(x: Tensor, y: Tensor) -> Tensor:
    x += 1
    return x + y


@fault("schema", rows=("input_changed",), samples=[(rand(3, 4), rand(3, 4, seed=1))])
@library_op("(Tensor x, Tensor y) -> Tensor", "CompositeExplicitAutograd", fake=lambda x, y: torch.empty_like(x))
def adds_into_second(x: Tensor, y: Tensor) -> Tensor:
    y.detach().add_(x.detach())
    return y.detach().clone()


@fault("fake", samples=[(rand(3, 4),)])
@custom_op(fake=None)
def without_fake(x: Tensor) -> Tensor:
    return x * 2


@fault("fake", samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[-1]))
def row_sums_shape(x: Tensor) -> Tensor:
    return x.sum(-1)


@fault("fake", samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: torch.empty_like(x))
def argsort_dtype(x: Tensor) -> Tensor:
    return x.argsort(-1)


@fault("fake", rows=("strides",), samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[1], x.shape[0]))
def transposed_strides(x: Tensor) -> Tensor:
    return x.clone().mT


@fault("fake", rows=("fake_specialized",), samples=[(rand(3, 5),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[0], x.shape[1] // 2))
def pairs_rounded_up(x: Tensor) -> Tensor:
    """The fake rounds down: right for even lengths only."""
    return x[:, ::2].clone()


@fault("fake", rows=("fake_specialized",), samples=[(rand(3, 6),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[0], x.shape[1] // 2))
def pairs_of_even_sample(x: Tensor) -> Tensor:
    """The declared sample is even, where the fake is right."""
    return x[:, ::2].clone()


@fault("fake_specialized", samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(3, x.shape[1]))
def fake_with_fixed_batch(x: Tensor) -> Tensor:
    return x.exp()


@fault("fake_specialized", samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty([int(n) for n in x.shape]))
def fake_with_int_sizes(x: Tensor) -> Tensor:
    return x.exp()


@fault("fake", samples=[(randn(2, 3, 8), randn(4, 3, 3, seed=1))])
@custom_op(fake=lambda x, w: x.new_empty(x.shape[0], w.shape[0], x.shape[2]))
def convolution_fake_same(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv1d(x, weight)


@fault("fake", samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: (x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1])))
def minimum_index_type(x: Tensor) -> tuple[Tensor, Tensor]:
    values, index = x.min(-1)
    return values, index


@fault("fake", samples=[(randn(3, 8),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[0], x.shape[1] // 2 + 1))
def spectrum_complex(x: Tensor) -> Tensor:
    return torch.fft.rfft(x)


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


@fault("autograd_registration", rows=("fake", "wrong_dispatch_key"), samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CPU", fake=lambda x: torch.empty_like(x))
def function_on_cpu_key(x: Tensor) -> Tensor:
    return _Kernel.apply(x)


@fault("autograd_registration", rows=("fake", "wrong_dispatch_key"), samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "AutogradCPU")
def autograd_cpu_key_only(x: Tensor) -> Tensor:
    return _Kernel.apply(x)


@fault("device", rows=("missing_kernel",), samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CPU")
def cpu_key_without_fake(x: Tensor) -> Tensor:
    return x.detach().exp()


@fault("data_dependent", samples=[(randn(3, 4),)])
def scale_by_item(x: Tensor) -> Tensor:
    return x / (1 + x.abs().max().item())


@fault("data_dependent", samples=[(rand(3, 4),)])
def branch_on_any(x: Tensor) -> Tensor:
    return x.log() if (x > 0).all() else x.exp()


@fault("graph_break", samples=[(randn(3, 4),)])
def positive_values(x: Tensor) -> Tensor:
    return x[x > 0].sum() + x.sum()


@fault("data_dependent", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def steps_until_small(x: Tensor) -> Tensor:
    while x.abs().max() > 0.1:
        x = x / 2
    return x


@fault("data_dependent", samples=[(rand(6, 3), torch.tensor([2, 3, 1]))])
def split_by_lengths(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.stack([part.mean(0) for part in x.split(lengths.tolist())])


class MaskByNonzero(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = (x[:, 0] > 0.9).nonzero().squeeze(-1)
        return x.sum(0) + x[rows].sum(0)


fault("data_dependent", samples=[(rand(5, 3),)])(MaskByNonzero)


class DataDependentBackward(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        scale = 2.0 if bool(grad.abs().sum() > 0) else 0.0
        return scale * grad * ctx.saved_tensors[0]


fault("data_dependent", rows=("vmap", "compile_backward", "hessian", "jacrev"), samples=[(rand(3, 4),)])(
    DataDependentBackward
)


@fault("device", samples=[(rand(3, 4),)])
def weights_on_cpu(x: Tensor) -> Tensor:
    return x * torch.linspace(0.1, 1.0, x.shape[-1], dtype=x.dtype)


@fault("device", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def zeros_on_cpu(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros(x.shape[0], 1, dtype=x.dtype), x], -1)


class MaskOnCpu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype).tril()
        return x @ mask


fault("device", samples=[(rand(3, 4),)])(MaskOnCpu)


@healthy(samples=[(rand(3, 5),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[0], (x.shape[1] + 1) // 2))
def pairs(x: Tensor) -> Tensor:
    return x[:, ::2].clone()


@healthy(samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[1], x.shape[0]))
def transposed_copy(x: Tensor) -> Tensor:
    return x.mT.clone(memory_format=torch.contiguous_format)


@healthy(samples=[(randn(3, 8),)])
def low_pass(x: Tensor) -> Tensor:
    """Complex numbers inside, real ones outside."""
    spectrum = torch.fft.rfft(x)
    keep = torch.arange(spectrum.shape[-1], device=x.device) < 3
    return torch.fft.irfft(spectrum * keep, n=x.shape[-1])


@healthy(samples=[(randn(2, 3, 8), randn(4, 3, 3, seed=1))])
def convolution_valid(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv1d(x, weight)


@healthy(samples=[(rand(3, 4), None), (rand(3, 4), rand(4, seed=1))])
@library_op("(Tensor x, Tensor? weight=None) -> Tensor", "CompositeImplicitAutograd")
def optional_weight(x: Tensor, weight: Tensor | None = None) -> Tensor:
    return x.cumsum(-1) if weight is None else x.cumsum(-1) * weight


class CausalMask(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).tril()
        return x @ mask


healthy(samples=[(rand(3, 4),)])(CausalMask)
