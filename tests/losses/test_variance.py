"""`qlike` and its Module."""

import pytest
import torch

from torchcommodity.losses import QLIKELoss, qlike


def test_qlike_is_minimal_at_the_mean() -> None:
    realized = torch.tensor([0.5, 1.5, 4.0], dtype=torch.double)
    mean = realized.mean()
    losses = [qlike((mean * f).expand(3), realized).item() for f in (0.5, 0.9, 1.0, 1.1, 2.0)]
    assert min(losses) == losses[2]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_qlike_gradcheck(reduction: str) -> None:
    generator = torch.Generator().manual_seed(0)
    variance = torch.randn(4, 5, dtype=torch.double, generator=generator).exp().requires_grad_()
    realized = torch.randn(4, 5, dtype=torch.double, generator=generator).square()
    assert torch.autograd.gradcheck(lambda h: qlike(h, realized, reduction=reduction), variance)


def test_qlike_of_a_missing_value_has_no_gradient() -> None:
    variance = torch.tensor([1.0, torch.nan], requires_grad=True)
    qlike(variance, torch.tensor([1.0, torch.nan])).backward()
    assert variance.grad is not None
    assert variance.grad.tolist() == [0.0, 0.0]


def test_qlike_module_equals_the_function() -> None:
    variance, realized = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])
    assert torch.equal(QLIKELoss()(variance, realized), qlike(variance, realized))


def test_qlike_rejects_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"qlike: variance and realized must have the same shape; got variance \(2,\), realized \(3,\)"
    ):
        qlike(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match=r"qlike: reduction must be .*; got 'average'"):
        qlike(torch.ones(2), torch.ones(2), reduction="average")  # type: ignore[arg-type]
