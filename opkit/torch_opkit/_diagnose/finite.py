"""Where the first value that is not finite comes from."""

from typing import Any, NamedTuple

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from torch_opkit._diagnose.locations import Place
from torch_opkit._diagnose.trace import Call
from torch_opkit._diagnose.values import is_finite

# these write a constant on purpose, such as the -inf of an attention mask
CONSTANTS = {
    "masked_fill", "masked_fill_", "full", "full_like", "new_full", "fill_", "tensor", "as_tensor", "new_tensor",
    "where", "__setitem__", "triu", "tril", "triu_", "tril_", "empty", "empty_like", "new_empty", "pad",
}  # fmt: skip


class NonFiniteOrigin(NamedTuple):
    """Where NaN and infinity begin: a line; or the name of a parameter, or of a Tensor of the batch."""

    place: Place
    kind: str = "operation"
    name: str = ""


class FiniteObserver:
    """Follow values that are not finite: a result has the origin of its argument, or else its own line."""

    def __init__(self, inputs: dict[str, dict[str, Tensor]]) -> None:
        self.origins: Any = WeakTensorKeyDictionary()
        self.last: NonFiniteOrigin | None = None
        for kind, tensors in inputs.items():
            for name, x in tensors.items():
                if _is_number(x) and not is_finite(x):
                    self.origins[x] = NonFiniteOrigin(Place(), kind, name)

    def __call__(self, call: Call) -> None:
        for y in call.outputs:
            if _is_number(y) and y.numel() and not is_finite(y):
                self.origins[y] = self.last = self._origin(call, y)
            elif y in self.origins:
                del self.origins[y]

    def _origin(self, call: Call, y: Tensor) -> NonFiniteOrigin:
        known: list[NonFiniteOrigin] = [self.origins[x] for x in call.tensors if x in self.origins]
        # a deliberate infinity becomes NaN here: a softmax of a row that is masked entirely
        new_nan = y.isnan().any() and not any(x.isnan().any() for x in call.tensors if x in self.origins)
        computed = [origin for origin in known if origin.kind != "constant"]
        if computed:
            return computed[0]
        if known and not new_nan:
            return known[0]
        return NonFiniteOrigin(call.place, "constant" if call.name in CONSTANTS else "operation")


def _is_number(x: Tensor) -> bool:
    return (x.is_floating_point() or x.is_complex()) and not x.is_meta
