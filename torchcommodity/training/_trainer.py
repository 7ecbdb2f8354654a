"""Trainer: the network, its optimizer and everything else that a checkpoint saves."""

import copy
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from torchcommodity.losses import pinball
from torchcommodity.models import HarNetwork, to_device
from torchcommodity.training._batches import TrainingBatch
from torchcommodity.training._runtime import all_reduce_gradients

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class BestEpoch(NamedTuple):
    """Best epoch so far, its network, and the horizons it improves."""

    epoch: int
    network: dict[str, Tensor]
    improved: Tensor  # (H,) bool


class Trainer:
    """Copy of a model on the device of `fabric`, with its optimizer, random generator and progress.

    Args:
        model: a model of `models.MODELS`; its econometric part is frozen.
        fabric: device, precision and processes.
        seed: random seed of shuffling and dropout.
        learning_rate: learning rate of AdamW.
        weight_decay: weight decay of AdamW.
    """

    def __init__(
        self,
        model: HarNetwork,
        fabric: "Fabric",
        seed: int,
        *,
        learning_rate: float,
        weight_decay: float,
    ) -> None:
        self.fabric, self.seed = fabric, seed
        self.model = to_device(copy.deepcopy(model), fabric.device)
        self.model.har.requires_grad_(False)
        self.parameters = network_parameters(self.model)
        self.optimizer = torch.optim.AdamW(self.parameters, lr=learning_rate, weight_decay=weight_decay)
        self._fabric_optimizer = cast(torch.optim.Optimizer, fabric.setup_optimizers(self.optimizer))
        self.generator = torch.Generator().manual_seed(seed)
        self.epoch_generator_state = self.generator.get_state()  # at the start of the current epoch
        self.epoch, self.step, self.total_steps = 1, 0, 0  # current epoch, steps done in it, steps done in all
        self.best_change, self.validation = 0.0, list[list[float]]()
        no_horizon = torch.zeros(len(model.har.config.horizons), dtype=torch.bool)
        self.best = BestEpoch(0, network_state(self.model), no_horizon)

    def train_step(self, micro_batches: Iterable[TrainingBatch], weight: Tensor, max_norm: float) -> Tensor:  # ()
        """One optimizer step on the micro-batches of this process; returns their loss."""
        self.model.train()
        # dropout is seeded by step, so that a resumed run draws the same masks
        numbers = self.seed, self.epoch, self.step, self.fabric.global_rank
        torch.manual_seed(reduce(lambda seed, number: (seed * 1_000_003 + number) % 2**63, numbers, 0))
        self._fabric_optimizer.zero_grad()
        total = torch.zeros((), device=self.fabric.device)
        for batch in micro_batches:
            sums, _ = self._losses(batch)
            loss = (sums * weight.to(sums)).sum()
            self.fabric.backward(loss)
            total += loss.detach()
        all_reduce_gradients(self.fabric, self.parameters)
        # a gradient scaler (float16) lowers its scale on overflow and skips the step: not an error
        scaled = getattr(self.fabric.strategy.precision, "scaler", None) is not None
        self.fabric.clip_gradients(self.model, self._fabric_optimizer, max_norm=max_norm, error_if_nonfinite=not scaled)
        self._fabric_optimizer.step()
        self.step, self.total_steps = self.step + 1, self.total_steps + 1
        return total

    @torch.no_grad()
    def evaluate(self, batch: TrainingBatch, correction: float) -> Tensor:  # (H,)
        """Mean loss per horizon, NaN where a horizon has no target; `correction` = 0 gives the econometric baseline."""
        self.model.eval()
        sums, counts = self._losses(batch, correction)
        return (sums / counts).cpu()

    def save_best(self, change: float, improved: Tensor) -> None:
        """Save the current epoch as the best one."""
        self.best_change, self.best = change, BestEpoch(self.epoch, network_state(self.model), improved)

    def next_epoch(self) -> None:
        """Advance to the first step of the next epoch."""
        self.epoch, self.step, self.epoch_generator_state = self.epoch + 1, 0, self.generator.get_state()

    def state_dict(self) -> dict[str, Any]:
        """State for resuming, in types that `torch.load(weights_only=True)` accepts."""
        return {
            "network": network_state(self.model),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.fabric.strategy.precision.state_dict(),
            "generator": self.epoch_generator_state,
            "progress": [self.epoch, self.step, self.total_steps, self.best_change],
            "validation": self.validation,
            "best": list(self.best),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the plan of the current epoch is rebuilt from the same generator state."""
        load_network(self.model, state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.fabric.strategy.precision.load_state_dict(state["scaler"])
        self.epoch_generator_state = state["generator"]
        self.generator.set_state(self.epoch_generator_state)
        self.epoch, self.step, self.total_steps, self.best_change = state["progress"]
        self.validation, self.best = state["validation"], BestEpoch(*state["best"])

    def _losses(self, batch: TrainingBatch, correction: float = 1.0) -> tuple[Tensor, Tensor]:  # (H,), (H,)
        """Sum of the loss over all finite targets and levels, and its number of terms.

        `correction` multiplies the correction of the log scale.
        """
        batch, har = batch.to(self.fabric.device), self.model.har
        scale = self._scale(self.model, batch, correction)  # (B, T, H, N)
        levels = torch.tensor(har.config.levels).to(scale)
        sums = []
        for h, z in enumerate(har.z.to(scale)):  # (N, Q)
            quantiles, target = scale[:, :, h].unsqueeze(-1) * z, batch.targets[:, :, h].to(scale)
            sums.append(pinball(quantiles, target, levels, reduction="sum"))
        return torch.stack(sums), batch.targets.isfinite().sum((0, 1, 3)) * len(levels)

    def _scale(self, model: HarNetwork, batch: TrainingBatch, correction: float) -> Tensor:  # (B, T, H, N)
        """Factor by which a network corrects the econometric scale."""
        with self.fabric.autocast():
            raw = model.correction(batch.har_output)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        return (correction * model.har.scale_correction(raw)).exp()


def network_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters trained by gradient descent: all except those of the econometric part."""
    return [parameter for name, parameter in model.named_parameters() if not name.startswith("har.")]


def network_state(model: nn.Module) -> dict[str, Tensor]:
    """Copy of the network's parameters and buffers."""
    return {name: x.detach().clone() for name, x in model.state_dict().items() if not name.startswith("har.")}


@torch.no_grad()
def load_network(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Copy a `network_state` into the model."""
    tensors = model.state_dict()
    for name, value in state.items():
        tensors[name].copy_(value)
