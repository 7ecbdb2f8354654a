"""Tensors of `inference_mode`, which autograd refuses."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty, regression


@faulty("inference_tensor", "no_grad", line=("features = self.encoder(x)", "inference_mode()", "self.head(features)"))
def features_of_inference_mode() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            with torch.inference_mode():
                features = self.encoder(x)
            return self.head(features)

    return Model(), regression(), F.mse_loss


@faulty("inference_tensor")
def batch_of_inference_mode() -> Setup:
    with torch.inference_mode():
        batch = regression()
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), batch, F.mse_loss


@faulty("inference_tensor")
def model_of_inference_mode() -> Setup:
    with torch.inference_mode():
        model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, regression(), F.mse_loss


@faulty("inference_tensor")
def buffer_of_inference_mode() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)
            with torch.inference_mode():
                self.register_buffer("scale", torch.ones(16, 1))

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) * self.scale

    return Model(), regression(), F.mse_loss
