"""A network in training: everything that changes from step to step, and so everything that a checkpoint holds."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from torchcommodity.losses import distillation, pinball
from torchcommodity.models import HarOutput
from torchcommodity.training._batches import TrainingBatch
from torchcommodity.training._runtime import add_up


class Kept(NamedTuple):
    """The best epoch so far, its network, and which horizons it improves."""

    epoch: int
    network: dict[str, Tensor]
    better: Tensor  # (H,) bool


class Teacher(NamedTuple):
    """A trained model whose quantiles a smaller one learns beside the truth."""

    model: Any
    weight: float  # of the teacher, in [0, 1]; the rest is the truth's


class Trainer:
    """A copy of a model on the device of `fabric`, its optimizer, its generator and how far it is."""

    def __init__(
        self,
        model: Any,
        fabric: Fabric,
        seed: int,
        *,
        learning_rate: float,
        weight_decay: float,
        teacher: Teacher | None = None,
    ) -> None:
        self.fabric, self.seed, self.teacher = fabric, seed, teacher
        self.model = _numbers_of(fabric, copy.deepcopy(model)).to(fabric.device)
        self.model.har.requires_grad_(False)
        self.parameters = network(self.model)
        self.optimizer = torch.optim.AdamW(self.parameters, lr=learning_rate, weight_decay=weight_decay)
        self._stepper = cast(torch.optim.Optimizer, fabric.setup_optimizers(self.optimizer))
        self.order = torch.Generator().manual_seed(seed)
        self.drawn = self.order.get_state()  # as it was before the epoch in progress
        self.epoch, self.step, self.total = 1, 0, 0  # the epoch in progress, steps of it and steps of all that are done
        self.best, self.validation = 0.0, list[list[float]]()
        self.kept = Kept(0, network_state(self.model), torch.zeros(len(model.har.config.horizons), dtype=torch.bool))

    def learn(self, lessons: Iterable[TrainingBatch], weight: Tensor, clip: float) -> Tensor:  # ()
        """One step on this process's pieces of it; gives the loss of the whole step."""
        self.model.train()
        # of dropout; by the step and not by what came before, so that a resumed training draws the same
        torch.manual_seed(_mixed(self.seed, self.epoch, self.step, self.fabric.global_rank))
        self._stepper.zero_grad()
        total = torch.zeros((), device=self.fabric.device)
        for lesson in lessons:
            sums, _ = self._losses(_numbers_of(self.fabric, lesson))
            part = (sums * weight.to(sums)).sum()
            self.fabric.backward(part)
            total += part.detach()
        add_up(self.fabric, self.parameters)
        # float16 finds its scale by overflow: such a step is left out, and is no error
        scaled = getattr(self.fabric.strategy.precision, "scaler", None) is not None
        self.fabric.clip_gradients(self.model, self._stepper, max_norm=clip, error_if_nonfinite=not scaled)
        self._stepper.step()
        self.step, self.total = self.step + 1, self.total + 1
        return total

    @torch.no_grad()
    def judge(self, lesson: TrainingBatch, size: float) -> Tensor:  # (H,)
        """Mean loss per horizon, NaN where a horizon has no target; `size` 0 is the baseline."""
        self.model.eval()
        sums, known = self._losses(_numbers_of(self.fabric, lesson), size, heard=self.model.har.config.shrink)
        return (sums / known).cpu()

    def keep(self, gain: float, better: Tensor) -> None:
        """The epoch in progress is the best so far."""
        self.best, self.kept = gain, Kept(self.epoch, network_state(self.model), better)

    def next_epoch(self) -> None:
        self.epoch, self.step, self.drawn = self.epoch + 1, 0, self.order.get_state()

    def state(self) -> dict[str, Any]:
        """Everything that it takes to carry on, as `torch.save` writes it."""
        return {
            "network": network_state(self.model),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.fabric.strategy.precision.state_dict(),
            "drawn": self.drawn,
            "progress": [self.epoch, self.step, self.total, self.best],
            "validation": self.validation,
            "kept": list(self.kept),
        }

    def carry_on(self, state: Mapping[str, Any]) -> None:
        """Be as when `state` was taken; the epoch in progress is planned anew, and the same."""
        put(self.model, state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.fabric.strategy.precision.load_state_dict(state["scaler"])
        self.drawn = state["drawn"]
        self.order.set_state(self.drawn)
        self.epoch, self.step, self.total, self.best = state["progress"]
        self.validation, self.kept = state["validation"], Kept(*state["kept"])

    def _losses(
        self, lesson: TrainingBatch, size: float = 1.0, heard: float = 1.0
    ) -> tuple[Tensor, Tensor]:  # (H,), (H,)
        """Sums over the known targets of the loss at all levels, and how many terms each sum has.

        `size` and `heard` are what is used of the bend, of the student and of its teacher.
        """
        lesson, har = self.fabric.to_device(lesson), self.model.har
        scale = self._scale(self.model, lesson, size)  # (B, T, H, N)
        levels = torch.tensor(har.config.levels).to(scale)
        soft = None if self.teacher is None else self._scale(self.teacher.model, lesson, heard).to(scale)
        sums = []
        for h, z in enumerate(har.z.to(scale)):
            quantiles, target = scale[:, :, h].unsqueeze(-1) * z, lesson.targets[:, :, h].to(scale)
            if self.teacher is None or soft is None:
                sums.append(pinball(quantiles, target, levels, reduction="sum"))
            else:
                taught, weight = soft[:, :, h].detach().unsqueeze(-1) * z, self.teacher.weight
                sums.append(distillation(quantiles, taught, target, levels, weight=weight, reduction="sum"))
        return torch.stack(sums), lesson.targets.isfinite().sum((0, 1, 3)) * len(levels)

    def _scale(self, model: Any, lesson: TrainingBatch, size: float) -> Tensor:  # (B, T, H, N)
        """What a model makes of the baseline's scale."""
        with self.fabric.autocast():
            raw = model.correction(lesson.market)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        bend: Tensor = model.har.scale_correction(raw)
        return (size * bend).exp()


def network(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn by gradient: all but those of the econometric part, which is fitted in closed form."""
    return [parameter for name, parameter in model.named_parameters() if not name.startswith("har.")]


def network_state(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the network's parameters and of the statistics that its layers keep."""
    return {name: x.detach().clone() for name, x in model.state_dict().items() if not name.startswith("har.")}


@torch.no_grad()
def put(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """The copy back into the network."""
    own = model.state_dict()
    for name, value in state.items():
        own[name].copy_(value)


def _numbers_of(fabric: Fabric, x: Any) -> Any:
    """In float32 where the device has no float64."""
    if fabric.device.type != "mps":
        return x
    if isinstance(x, TrainingBatch):
        return TrainingBatch(HarOutput(*(part.float() for part in x.market)), x.targets.float())
    return x.float()


def _mixed(*numbers: int) -> int:
    found = 0
    for number in numbers:
        found = (found * 1_000_003 + number) % 2**63
    return found
