"""`opkit.arguments`: each check, and the format of its message."""

import pytest
import torch

from torch_opkit.arguments import check_integer, check_panel, check_values, raise_invalid


def test_raise_invalid_shows_settings_then_shapes() -> None:
    with pytest.raises(ValueError, match=r"^f: window must be in \[2, T\]; got window=60 with returns \(3, 40, 5\)$"):
        raise_invalid("f", "window must be in [2, T]", window=60, returns=torch.ones(3, 40, 5))


def test_check_panel_rejects_lists_integers_and_vectors() -> None:
    with pytest.raises(TypeError, match=r"f: x must be a Tensor \(..., T, N\); got x='list'"):
        check_panel("f", x=[1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"f: x must be floating-point; got dtype=torch.int64 with x \(2, 3\)"):
        check_panel("f", x=torch.ones(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"f: x must be \(..., T, N\); got x \(3,\)"):
        check_panel("f", x=torch.ones(3))


def test_check_panel_rejects_mixed_dtypes() -> None:
    with pytest.raises(
        TypeError, match=r"f: all tensors must have one dtype and one device; got x='torch.float32 on cpu'"
    ):
        check_panel("f", x=torch.ones(2, 3), y=torch.ones(2, 3).double())


def test_check_integer_rejects_bools_and_values_out_of_range() -> None:
    with pytest.raises(TypeError, match="f: window must be an int; got window=True"):
        check_integer("f", 2, window=True)
    with pytest.raises(ValueError, match=r"f: window must be in \[2, 9\]; got window=1"):
        check_integer("f", 2, maximum=9, window=1)
    check_integer("f", 2, maximum=9, window=9)


def test_check_values_shows_the_first_invalid_value() -> None:
    alpha, x = torch.tensor([0.1, -0.2, -0.3]), torch.ones(4, 3)
    with pytest.raises(ValueError, match=r"f: alpha must be >= 0; got alpha=-0.2, series=1 with x \(4, 3\)"):
        check_values("f", {"alpha must be >= 0": alpha >= 0}, alpha=alpha, beta=alpha, x=x)
    assert check_values("f", {"alpha must be <= 1": alpha <= 1}, alpha=alpha) is None


def test_check_values_names_the_first_rule_that_does_not_hold() -> None:
    alpha, beta = torch.tensor([0.1, 0.2]), torch.tensor([0.5, -0.5])
    rules = {"alpha must be >= 0": alpha >= 0, "beta must be >= 0": beta >= 0, "alpha must be > 1": alpha > 1}
    with pytest.raises(ValueError, match=r"^f: beta must be >= 0; got beta=-0.5, series=1$"):
        check_values("f", rules, alpha=alpha, beta=beta)


def test_check_values_returns_a_mask_under_torch_func() -> None:
    alpha = torch.tensor([[0.1], [-0.2]])
    masks = torch.vmap(lambda a: check_values("f", {"alpha must be >= 0": a >= 0}, alpha=a))(alpha)
    assert masks.tolist() == [[True], [False]]
