"""Models that take mappings and return objects with `.loss` and `.logits`, as those of `transformers`."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.optimize import distill, mixed_precision, profile, quantization_report, quantize


class Output(dict[str, Any]):
    """A mapping with attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Classifier(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, width)
        self.head = nn.Linear(width, 3)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Output:
        logits = self.head(self.embedding(input_ids).mean(1))
        return Output(logits=logits, loss=None if labels is None else F.cross_entropy(logits, labels))


def make_batches() -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [
        {
            "input_ids": torch.randint(20, (8, 5), generator=generator),
            "labels": torch.randint(3, (8,), generator=generator),
        }
        for _ in range(2)
    ]


def test_temperature_reads_logits_and_the_own_loss_of_the_student() -> None:
    teacher, student, batches = Classifier(8), Classifier(4), make_batches()
    for weight in (0.0, 1.0):
        result = distill(teacher, student, batches[:1], loss="temperature", temperature=1.0, weight=weight, epochs=1)
        output, expected = student(**batches[0]), teacher(**batches[0])
        soft = F.kl_div(
            output.logits.log_softmax(-1), expected.logits.log_softmax(-1), log_target=True, reduction="batchmean"
        )
        assert result.losses[0] == pytest.approx((soft if weight else output.loss).item(), rel=1e-5)


def test_quantization_report_takes_a_list_of_batches() -> None:
    model, batches = Classifier(8), make_batches()
    small = quantize(model)
    one, two = (quantization_report(model, small, example).max_error for example in (batches[0], batches))
    assert one is not None
    assert two is not None
    assert 0 < one <= two
    with pytest.raises(ValueError, match="example must hold at least one batch; got an empty iterable"):
        quantization_report(model, small, [])


def test_profile_names_no_line_of_our_own() -> None:
    result = profile(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), [torch.ones(2, 4)], steps=1, warmup=0)
    assert not any("optimize/" in cost.location for cost in result.operators)


@pytest.mark.parametrize("kind", [Output, SimpleNamespace])
def test_mixed_precision_returns_float32_in_objects(kind: Any) -> None:
    class Wrapped(Classifier):
        def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Any:
            return kind(**super().forward(input_ids, labels))

    output = mixed_precision(Wrapped(8))(**make_batches()[0])
    assert type(output) is kind
    assert output.logits.dtype == output.loss.dtype == torch.float32
