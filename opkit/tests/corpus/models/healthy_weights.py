"""Healthy: normalization in eval mode, parametrized, complex and single parameters."""

import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, weight_norm

from corpus.models.entries import Setup, healthy, regression


@healthy
def batch_norm_frozen_in_eval() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    model[1].eval().requires_grad_(False)
    return model, regression(), F.mse_loss


@healthy
def model_in_eval_mode() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    return model.eval(), regression(), F.mse_loss


@healthy
def dropout_and_layer_norm() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 1))
    return model, regression(), F.mse_loss


@healthy
def weight_norm_legacy() -> Setup:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = weight_norm(nn.Linear(3, 8))
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(8, 1)), regression(), F.mse_loss


@healthy
def weight_norm_parametrization() -> Setup:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 8)), nn.Tanh(), nn.Linear(8, 1))
    return model, regression(), F.mse_loss


@healthy
def spectral_norm() -> Setup:
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 8)), nn.Tanh(), nn.Linear(8, 1))
    return model, regression(), F.mse_loss


@healthy
def orthogonal_weights() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), parametrizations.orthogonal(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 1))
    return model, regression(), F.mse_loss


@healthy
def complex_parameters() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.filter, self.head = nn.Parameter(torch.randn(5, dtype=torch.complex64)), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.fft.irfft(torch.fft.rfft(x) * self.filter, 8))

    return Model(), (torch.randn(16, 8), torch.randn(16, 1)), F.mse_loss


@healthy
def one_parameter() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.beta = nn.Parameter(torch.tensor(0.5))

        def forward(self, x: Tensor) -> Tensor:
            return self.beta * x

    return Model(), (torch.randn(16, 1), torch.randn(16, 1)), F.mse_loss


@healthy
def logistic_regression_from_zero() -> Setup:
    model = nn.Linear(3, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model, (torch.randn(16, 3), torch.randint(2, (16, 1)).float()), F.binary_cross_entropy_with_logits


@healthy
def random_features_in_a_plain_tensor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frequencies, self.head = torch.randn(3, 16), nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head((x @ self.frequencies).cos())

    return Model(), regression(), F.mse_loss
