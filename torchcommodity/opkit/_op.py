"""The record of an operator. Write a reference; `Op` teaches PyTorch the rest, once, for every operator.

    operator = Op("square", reference=_reference, backward=_backward)
    y = operator(x)

`reference` defines the operator on any device; its signature is the schema. `backward` is a formula made of operators,
so it can itself be differentiated, batched and compiled. Its keyword-only parameters name what the forward pass keeps
for it, an argument or "output":

    def _backward(grad, *, x): return 2 * x * grad

A native kernel of the same name takes over by dispatch if its library was loaded before the record is made.
"""

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from torchcommodity.opkit import _torch_private as private
from torchcommodity.opkit._autograd import Formula, Gradients, autograd_kernel, constant_kernel
from torchcommodity.opkit._cases import Cases
from torchcommodity.opkit._fingerprint import remember

NAMESPACE = "commodity"
HALF_DTYPES = {torch.float16, torch.bfloat16}

OPERATORS: dict[str, "Op"] = globals().get("OPERATORS", {})  # these three survive a reload of this module
_DEFINED_HERE: set[str] = globals().get("_DEFINED_HERE", set())
_LIBRARIES: dict[str, torch.library.Library] = globals().get("_LIBRARIES", {})

private.warn_untested()


def _like_first(*args: Any) -> Tensor:
    first: Tensor = next(x for x in args if isinstance(x, Tensor))
    return first.new_empty(first.shape)


def _no_warmup(*settings: Any) -> int:
    return 0


@dataclass(frozen=True, eq=False)
class Op:
    """One operator: what it is, how it is differentiated, and the cases that it is checked on.

    Its Tensor arguments share their leading axes (the public function that checks arguments broadcasts them), so that
    batching is one more leading axis. Where they do not, as beside weights or where a batch is one statistic, the
    record says `vmap="loop"`. `name` may carry a namespace, "mine::square"; without one it is "commodity::".
    """

    name: str
    reference: Callable[..., Any]  # the definition, in plain PyTorch
    backward: Formula | None = None  # (gradient of each output, *, kept) -> gradient of each Tensor argument
    jvp: Formula | None = None  # (tangent of each Tensor argument, *, kept) -> of each output; if None, from `backward`
    fake: Callable[..., Any] = _like_first  # outputs without values; default: one, like the first Tensor argument
    decomposition: Callable[..., Any] | None = None  # the reference without a loop over time, for ONNX
    mask_nan_grad: bool = (
        True  # a NaN output ignores its gradient; False: `backward` sees to it, and gets outputs as they are
    )
    materialize_grads: bool = True  # zeros for the gradient of an output that nobody used; False: None
    cases: Callable[[], Cases] | None = None  # samples, bad inputs, golden numbers, oracle: for `check`
    warmup: Callable[..., int | tuple[int, ...]] = _no_warmup  # (*settings) -> rows of warm-up, of each output
    causal: bool | Callable[..., bool] = True  # row t depends on rows <= t only; may depend on the settings
    time: tuple[int, int] | None = (-2, -2)  # the time axis of panel arguments and of outputs; None: there is none
    vmap: Literal["batch", "loop"] = (
        "batch"  # `vmap` calls the operator for each sample; weights and batch statistics need it
    )
    overload: torch._ops.OpOverload = field(init=False, repr=False)
    kernel: Callable[..., Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        namespace, _, name = self.name.rpartition("::")
        object.__setattr__(self, "name", name)
        overload = _declare(namespace or NAMESPACE, name, torch.library.infer_schema(self.reference, mutates_args=()))
        if self.fake is _like_first and len(overload._schema.returns) != 1:
            raise TypeError(f"{name}: fake must be given for {len(overload._schema.returns)} outputs; got none")
        rules = {"mask_nan_grad": self.mask_nan_grad, "materialize_grads": self.materialize_grads}
        gradients = Gradients(overload, self.backward, self.jvp, **rules) if self.backward else None
        object.__setattr__(self, "overload", overload)
        object.__setattr__(self, "kernel", autograd_kernel(gradients) if gradients else constant_kernel(overload))
        if self.qualified_name not in OPERATORS:
            _register(self)
        OPERATORS[self.qualified_name] = self
        remember(self.qualified_name, self.backward, self.jvp)
        private.decomposition_table[overload] = self.decomposition or self.reference  # torch.onnx.export reads it
        private.meta_table[overload] = self.fake  # else fake tensors of symbolic shape would run the decomposition

    @property
    def qualified_name(self) -> str:
        return str(self.overload._name)

    @property
    def devices(self) -> tuple[str, ...]:
        """Where a native kernel runs; everywhere else the reference does."""
        keys = {"CPU": "cpu", "CUDA": "cuda"}
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        return tuple(device for key, device in keys.items() if has(self.qualified_name, key))

    @property
    def native(self) -> bool:
        """Whether a native library owns the schema: a compiled model then needs that library only, no Python."""
        return self.qualified_name not in _DEFINED_HERE

    def __call__(self, *args: Any) -> Any:
        """Run the operator. float16 and bfloat16 are computed in float32 and come back as they came."""
        dtypes = {x.dtype for x in args if isinstance(x, Tensor) and x.is_floating_point()}
        if HALF_DTYPES & dtypes:
            outputs = self(*(x.float() if isinstance(x, Tensor) and x.dtype in HALF_DTYPES else x for x in args))
            narrow = dtypes.pop() if len(dtypes) == 1 else torch.float32
            return tree_map(lambda y: y.to(narrow) if y.is_floating_point() else y, outputs)
        if torch.compiler.is_compiling() or private.transforms_active():
            return self.overload(*args)
        return self.kernel(None, *args)  # the same, without one trip through the dispatcher

    def batched(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        """`vmap`: batching is one more leading axis, on every Tensor, or one call for each sample."""

        def lead(x: Any, dim: int | None) -> Any:
            if not isinstance(x, Tensor):
                return x
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

        led = [*map(lead, args, in_dims)]
        outputs = self._each(info.batch_size, led) if self.vmap == "loop" else self.overload(*led)
        return outputs, tree_map(lambda _: 0, outputs)

    def _each(self, samples: int, led: list[Any]) -> Any:
        of_each = [self.overload(*[x[k] if isinstance(x, Tensor) else x for x in led]) for k in range(samples)]
        return tree_map(lambda *ys: torch.stack(ys), *of_each)

    def fallback(self, *args: Any) -> Any:
        """The reference as a kernel: on devices without a native one, and where no library could be loaded."""
        for device in {x.device.type for x in args if isinstance(x, Tensor)} - {"cpu"}:
            _warn_reference(device)
        return self.reference(*args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:  # pickled and copied by name
        return _recall, (self.reference.__module__, self.qualified_name)


def _declare(namespace: str, name: str, signature: str) -> torch._ops.OpOverload:
    """Define the operator, unless a native library has; then its schema must be the reference's."""
    operators = getattr(torch.ops, namespace)
    if not hasattr(operators, name):
        _library(namespace).define(f"{name}{signature}", tags=(torch.Tag.pt2_compliant_tag,))
        _DEFINED_HERE.add(f"{namespace}::{name}")
    overload: torch._ops.OpOverload = getattr(operators, name).default
    if overload._schema != private.parse_schema(f"{namespace}::{name}{signature}"):
        raise RuntimeError(f"{name}: already declared as {overload._schema}; the reference says {name}{signature}")
    return overload


def _library(namespace: str) -> torch.library.Library:
    if namespace not in _LIBRARIES:
        _LIBRARIES[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _LIBRARIES[namespace]


def _register(op: Op) -> None:
    """Once in a process: a module that is reloaded replaces the record, not the registration."""
    name = op.qualified_name
    library = _library(name.split("::")[0])

    def current(role: str) -> Callable[..., Any]:
        return lambda *args: getattr(OPERATORS[name], role)(*args)

    library.impl(op.name, current("fallback"), "CompositeExplicitAutograd")

    def fake(*args: Any) -> Any:
        private.keep_whole(name)  # Inductor asks for the fake before it lowers
        return OPERATORS[name].fake(*args)

    torch.library.register_fake(name, fake, lib=library)
    torch.library.register_vmap(name, current("batched"), lib=library)
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(name, device, torch.float32, lib=library)
    library.impl(op.name, current("kernel"), "Autograd", with_keyset=True)


def _recall(module: str, name: str) -> Op:
    importlib.import_module(module)
    return OPERATORS[name]


@cache
def _warn_reference(device: str) -> None:
    warnings.warn(
        f"torchcommodity has no native kernels for {device}: operators run there through their references, slower",
        RuntimeWarning,
        stacklevel=3,
    )
