"""Units that are the same for every sample: dead rectifiers, saturated sigmoids."""

from typing import Any

from torch import Tensor, nn

from torchcommodity.opkit._diagnose.events import Call
from torchcommodity.opkit._diagnose.findings import Finding

MAX_DEAD_SHARE, MAX_SATURATED_SHARE, MIN_SAMPLES = 0.9, 0.95, 8
LAYERS = (nn.ReLU, nn.ReLU6, nn.Sigmoid, nn.Tanh)
BOUNDS = {"sigmoid": (0.0, 1.0), "sigmoid_": (0.0, 1.0), "tanh": (-1.0, 1.0), "tanh_": (-1.0, 1.0)}
RECTIFIERS = {"relu", "relu_", "relu6", "threshold", "threshold_"}
FIX_DEAD = "use a smaller learning rate or bias, a leaky activation, or normalized inputs"
FIX_SATURATED = "normalize the inputs, or use a smaller initialization of the layer before"


class UnitObserver:
    """Context manager around a forward pass, which names activation layers; and an observer of its calls."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.layer = model, ""
        self.findings: dict[tuple[str, str], Finding] = {}  # by name and location
        self.handles: list[Any] = []

    def __enter__(self) -> "UnitObserver":
        for name, module in self.model.named_modules():
            if isinstance(module, LAYERS):
                self.handles.append(module.register_forward_pre_hook(self._enter(name)))
                self.handles.append(module.register_forward_hook(self._leave))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _enter(self, name: str) -> Any:
        def hook(*_: object) -> None:
            self.layer = name

        return hook

    def _leave(self, *_: object) -> None:
        self.layer = ""

    def __call__(self, call: Call) -> None:
        if call.bits and call.name in RECTIFIERS | set(BOUNDS):
            for y in call.outputs:
                self._examine(call, y.detach())

    def _examine(self, call: Call, y: Tensor) -> None:
        """Gates of recurrent networks are functions too, so only layers are examined for saturation."""
        if call.name in RECTIFIERS:
            share = dead_share(y)
            if share > MAX_DEAD_SHARE:
                self._add("dead_units", f"{share:.0%} of the units are zero for every sample", FIX_DEAD, call)
        elif self.layer and y.dim() > 1 and y.numel() >= MIN_SAMPLES:
            low, high = BOUNDS[call.name]
            share = ((y < low + 1e-3) | (y > high - 1e-3)).float().mean().item()
            if share > MAX_SATURATED_SHARE:
                self._add("saturated_units", f"{share:.0%} of the values are at the bounds", FIX_SATURATED, call)

    def _add(self, kind: str, message: str, fix: str, call: Call) -> None:
        names = (self.layer,) if self.layer else ()
        finding = Finding(kind, message, fix, names, call.place.location)
        self.findings.setdefault((self.layer, finding.location), finding)


def dead_share(y: Tensor) -> float:
    """Share of units that are zero for every sample; 0 for fewer than MIN_SAMPLES samples."""
    if y.dim() < 2 or len(y) < MIN_SAMPLES or not y.numel():
        return 0.0
    return 1 - (y != 0).any(0).float().mean().item()
