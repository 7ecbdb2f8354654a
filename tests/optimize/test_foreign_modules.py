"""Modules that are not ours go through every function: a plain nn.Sequential, a CNN, a transformer block."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchcommodity.optimize import (
    channels_last,
    distill,
    fine_tune,
    mixed_precision,
    model_size,
    prune,
    quantization_report,
    quantize,
    remove_masks,
    sparsity,
    weight_importance,
)


def unchanged(module: nn.Module, before: dict[str, Tensor]) -> bool:
    state = module.state_dict()
    return list(state) == list(before) and all(torch.equal(state[name], x) for name, x in before.items())


def state_of(module: nn.Module) -> dict[str, Tensor]:
    return copy.deepcopy(module.state_dict())


def test_prune_zeros_the_share_of_any_module_and_fine_tune_keeps_zeros(network: Any) -> None:
    before = state_of(network.module)
    sparse = prune(network.module, 0.6)
    assert unchanged(network.module, before)
    assert type(sparse) is type(network.module)
    assert sparsity(sparse).share == pytest.approx(0.6, abs=0.01)
    assert list(sparse.state_dict()) == list(before)
    tuned = fine_tune(sparse, network.batches, network.loss, epochs=2, learning_rate=0.01)
    assert not tuned.training
    for name, weight in sparse.named_parameters():
        if weight.dim() > 1 and (weight == 0).any():
            assert (tuned.get_parameter(name)[weight == 0] == 0).all()
            assert not torch.equal(tuned.get_parameter(name), weight)
    assert tuned(network.example).shape == network.module(network.example).shape


def test_prune_by_gradient_loses_less_than_the_reverse_order(network: Any) -> None:
    settings = {"method": "gradient", "batches": network.batches, "loss_fn": network.loss}
    sparse = prune(network.module, 0.3, **settings)
    scores = weight_importance(network.module, network.batches, network.loss)
    zeroed = sum(score[sparse.get_parameter(name) == 0].sum() for name, score in scores.weights.items())
    assert zeroed < 0.1 * sum(score.sum() for score in scores.weights.values())
    assert scores.by_batch.shape == (3, len(scores.weights))
    torch.testing.assert_close(scores.by_batch.sum(1), torch.ones(3))
    assert "first batch" in str(scores)


def test_prune_masks_hold_in_any_training_loop(network: Any) -> None:
    masked = prune(network.module, 0.5, permanent=False)
    zeros = sparsity(masked).zeros
    optimizer = torch.optim.SGD(masked.parameters(), lr=0.1, momentum=0.9)
    for inputs, target in network.batches:
        network.loss(masked(inputs), target).backward()
        optimizer.step()
    assert sparsity(masked).zeros >= zeros
    plain = remove_masks(masked)
    torch.testing.assert_close(plain(network.example), masked(network.example))
    assert list(plain.state_dict()) == list(network.module.state_dict())


def test_quantize_keeps_outputs_and_reports_every_weight(network: Any) -> None:
    before = state_of(network.module)
    small = quantize(network.module)
    assert unchanged(network.module, before)
    report = quantization_report(network.module, small, network.example)
    assert report.relative_error is not None
    assert report.relative_error < 0.02
    assert {row.name for row in report.weights} == {name for name, _ in network.module.named_parameters()}
    assert all(row.bytes_after < row.bytes_before for row in report.weights if not row.note)
    assert {row.note for row in report.weights} <= {
        "",
        "one axis: a bias or a scale",
        "its use in Transformer is not known",
    }
    assert report.bytes_after == model_size(small).bytes - sum(x.nbytes for x in network.module.buffers())
    assert report.bytes_after < 0.5 * report.bytes_before


def test_quantized_module_can_be_copied_and_its_state_loaded(network: Any) -> None:
    small = quantize(network.module)
    expected = small(network.example)
    assert torch.equal(copy.deepcopy(small)(network.example), expected)
    fresh = copy.deepcopy(network.module)
    for parameter in fresh.parameters():
        nn.init.ones_(parameter)
    loaded = quantize(fresh)
    loaded.load_state_dict(small.state_dict())
    assert torch.equal(loaded(network.example), expected)


def test_distill_brings_a_student_closer_to_any_module(network: Any) -> None:
    student = copy.deepcopy(network.module)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.mul_(0.8)
    before = state_of(student)
    batches = [x for x, _ in network.batches]  # without targets
    result = distill(network.module, student, batches, loss="temperature", epochs=3, learning_rate=1e-3)
    assert result.improved
    assert type(result.model) is type(network.module)
    assert unchanged(student, before)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_quantized_module_compiles_and_exports(network: Any) -> None:
    torch._dynamo.reset()
    small = quantize(network.module)
    with torch.no_grad():
        expected = small(network.example)
        torch.testing.assert_close(torch.compile(small, fullgraph=True, backend="aot_eager")(network.example), expected)
        exported = torch.export.export(small, (network.example,)).module()
        torch.testing.assert_close(exported(network.example), expected)


def test_mixed_precision_halves_the_bytes_and_returns_float32(network: Any) -> None:
    small = mixed_precision(network.module)
    assert model_size(small).bytes <= 0.55 * model_size(network.module).bytes
    output, expected = small(network.example), network.module(network.example)
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, expected, rtol=0.1, atol=0.1)


def test_channels_last_keeps_outputs_or_refuses(network: Any) -> None:
    if not any(isinstance(layer, nn.Conv2d) for layer in network.module.modules()):
        with pytest.raises(ValueError, match=r"channels_last: model must have a 2-D convolution; got model="):
            channels_last(network.module)
        return
    fast = channels_last(network.module)
    assert fast.stem[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert network.module.stem[0].weight.is_contiguous()
    torch.testing.assert_close(fast(network.example), network.module(network.example))
