"""First derivatives of operators of the dispatcher that are wrong: composite, on the Autograd key, triton_op."""

import torch
from torch import Tensor

from corpus.entries import fault, healthy
from corpus.makes import Saved, library_op, randn, save_inputs


@fault("wrong_gradient", samples=[(randn(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def detached_gate(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x).detach()


class _AutogradKernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sinh()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].sinh()


@fault("wrong_gradient", samples=[(randn(3, 4),)])
@library_op("(Tensor x) -> Tensor", "Autograd")
def sinh_of_sinh(x: Tensor) -> Tensor:
    return _AutogradKernel.apply(x)


@fault("wrong_gradient", make="triton_op", samples=[(randn(3, 4),)])
@torch.library.triton_op("corpus::triton_gelu", mutates_args={})
def triton_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


triton_gelu.register_autograd(
    lambda ctx, grad: grad * 0.5 * (1 + torch.erf(ctx.saved_tensors[0] / 2**0.5)), setup_context=save_inputs
)


@healthy(samples=[(randn(4, 5), 0.1)])
@library_op("(Tensor x, float slope) -> Tensor", "CompositeImplicitAutograd")
def leaky_relu_composite(x: Tensor, slope: float) -> Tensor:
    return torch.where(x > 0, x, slope * x)


@healthy(make="triton_op", samples=[(randn(3, 4),)])
@torch.library.triton_op("corpus::triton_plain", mutates_args={})
def triton_plain(x: Tensor) -> Tensor:
    return x.tanh() * 2


class SwishFunction(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad * (gate + x * gate * (1 - gate))

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return tangent * (gate + x * gate * (1 - gate))


healthy(samples=[(randn(3, 4),)])(SwishFunction)
