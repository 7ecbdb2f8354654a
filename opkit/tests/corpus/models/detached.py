"""Values that leave the graph: every spelling of detach, `.data` and disabled gradients."""

import copy
import io

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from corpus.models.entries import Setup, between, faulty, regression, with_loss


@faulty("detach", line="h.detach().tanh()")
def detach_method() -> Setup:
    return between(lambda h: h.detach().tanh())


@faulty("detach", line="torch.detach(h)")
def detach_function() -> Setup:
    return between(lambda h: torch.detach(h) * 2)


@faulty("detach", line="h.detach_()")
def detach_in_place() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h.tanh()
        h.detach_()
        return h * 2

    return between(middle)


@faulty("detach", line="torch.detach_(h)")
def detach_in_place_function() -> Setup:
    def middle(h: Tensor) -> Tensor:
        torch.detach_(h)
        return h.tanh()

    return between(middle)


@faulty("detach", line="detach().clone()")
def detach_and_require_again() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h = h.detach().clone()
        h.requires_grad_()
        return h.tanh()

    return between(middle)


@faulty("data", line="h.data.tanh()")
def data_read() -> Setup:
    return between(lambda h: h.data.tanh())


@faulty("data", line="Variable(h.data")
def data_in_variable() -> Setup:
    return between(lambda h: torch.autograd.Variable(h.data, requires_grad=True).tanh())


@faulty("data", line="y.data = h.tanh()")
def data_assigned() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.zeros_like(h)
        y.data = h.tanh()
        return y

    return between(middle)


@faulty("data", line="h.data = h.sigmoid()")
def data_assigned_over_result() -> Setup:
    """Autograd differentiates the identity instead of the sigmoid."""

    def middle(h: Tensor) -> Tensor:
        h.data = h.sigmoid()
        return h

    return between(middle)


@faulty("data", line="y.data.copy_(h)")
def data_copied_into() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.empty_like(h)
        y.data.copy_(h)
        return y

    return between(middle)


@faulty("data", line="y.data[h > 0]")
def data_masked_assignment() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.zeros(h.shape)
        y.data[h > 0] = h[h > 0]
        return y

    return between(middle)


@faulty("data", line="y.data.add_(h)")
def data_added_to() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.ones(h.shape)
        y.data.add_(h)
        return y

    return between(middle)


@faulty("data", line="h.data.clamp_(min=0)")
def data_clamped() -> Setup:
    """A rectifier that the backward pass does not see."""

    def middle(h: Tensor) -> Tensor:
        h.data.clamp_(min=0)
        return h

    return between(middle)


@faulty("data", "crash", "detach", line="y.set_(h")
def set_storage() -> Setup:
    def middle(h: Tensor) -> Tensor:
        y = torch.empty(0)
        y.set_(h.detach())
        return y.tanh()

    return between(middle)


@faulty("no_grad", line="return h.tanh() * 3")
def no_grad_block() -> Setup:
    def middle(h: Tensor) -> Tensor:
        with torch.no_grad():
            return h.tanh() * 3

    return between(middle)


@faulty("no_grad", line="return h.tanh() * 4")
def no_grad_decorator() -> Setup:
    @torch.no_grad()
    def middle(h: Tensor) -> Tensor:
        return h.tanh() * 4

    return between(middle)


@faulty("no_grad", "inference_tensor", line=("y = h.tanh() * 5", "inference_mode()"))
def inference_mode_block() -> Setup:
    def middle(h: Tensor) -> Tensor:
        with torch.inference_mode():
            y = h.tanh() * 5
        return y.clone()

    return between(middle)


@faulty("no_grad", line=("set_grad_enabled(False)", "y = h.tanh() * 6"))
def gradients_switched_off() -> Setup:
    def middle(h: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        y = h.tanh() * 6
        torch.set_grad_enabled(True)
        return y

    return between(middle)


@faulty("no_grad", line=("set_grad_enabled(self.training and False)", "self.encoder(x)"))
def gradients_never_switched_on() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            torch.set_grad_enabled(self.training and False)
            return self.head(self.encoder(x).relu())

    return Model(), regression(), F.mse_loss


@faulty("crash", "detach", "not_differentiable", line="h.requires_grad = False")
def requires_grad_off_inside() -> Setup:
    def middle(h: Tensor) -> Tensor:
        h.requires_grad = False
        return h.tanh()

    return between(middle)


@faulty("copy", "crash", "python", line="copy.deepcopy(h)")
def deep_copy() -> Setup:
    return between(lambda h: copy.deepcopy(h).tanh())


@faulty("copy", "python", "detach", "not_a_parameter", line=("torch.save", "torch.load"))
def saved_and_loaded() -> Setup:
    def middle(h: Tensor) -> Tensor:
        file = io.BytesIO()
        torch.save(h, file)
        file.seek(0)
        return torch.load(file).tanh()

    return between(middle)


@faulty("copy", "new_parameter", "not_a_parameter", "detach", line="nn.Parameter(h)")
def parameter_of_a_result() -> Setup:
    return between(lambda h: nn.Parameter(h).tanh())


@faulty("detach", line="output.detach()")
def forward_hook_detaches() -> Setup:
    model, batch, loss_fn = between(torch.tanh)
    model.first.register_forward_hook(lambda module, args, output: output.detach())
    return model, batch, loss_fn


@faulty("detach", line="h.tanh().detach() * 2")
def detach_in_checkpoint() -> Setup:
    def body(h: Tensor) -> Tensor:
        return h.tanh().detach() * 2 + h.detach()

    return between(lambda h: checkpoint(body, h, use_reentrant=False))


@faulty("detach", line="output.detach() - target")
def detach_in_loss() -> Setup:
    return with_loss(lambda output, target: (output.detach() - target).square().mean())


@faulty("data", line="F.mse_loss(output.data")
def data_in_loss() -> Setup:
    return with_loss(lambda output, target: F.mse_loss(output.data, target))


@faulty("no_grad", line=("output - target + 0", ".square().mean()"))
def no_grad_in_loss() -> Setup:
    def loss_fn(output: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            error = output - target + 0
        return error.square().mean()

    return with_loss(loss_fn)
