"""The record of an operator. Write a reference and its gradient; `Op` registers everything else with PyTorch.

    operator = Op("mine::square", reference=_reference, backward=_backward)
    y = operator(x)

`reference` defines the operator on any device; its signature is the schema. `backward` is a formula made of operators,
so it can be differentiated, batched and compiled. Its keyword-only parameters name what is saved for it in the forward
pass, an argument or "output":

    def _backward(grad, *, x): return 2 * x * grad

If a native library with a kernel of this name is loaded before the record is created, the kernel runs instead.
"""

import functools
import hashlib
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import torch
import torch.compiler.config as compiler
from torch import Tensor
from torch.utils._pytree import tree_map

from torch_opkit import _torch_private as private
from torch_opkit._autograd import Formula, Gradients, autograd_kernel, constant_kernel
from torch_opkit._cases import Cases
from torch_opkit._mutation import mutated_indices, version_kernel
from torch_opkit._vjp import differentiate_reference

HALF_DTYPES = {torch.float16, torch.bfloat16}

OPERATORS: dict[str, "Op"] = globals().get("OPERATORS", {})  # these survive a reload of this module
_DEFINED_HERE: set[str] = globals().get("_DEFINED_HERE", set())
_LIBRARIES: dict[str, torch.library.Library] = globals().get("_LIBRARIES", {})
_FORMULA_HASHES: dict[str, str] = globals().get("_FORMULA_HASHES", {})
_CACHE_KEY_TAG: str = globals().get("_CACHE_KEY_TAG", compiler.cache_key_tag)  # what others have set

private.warn_untested()


def is_floating(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _like_first(*args: object) -> Tensor:
    first: Tensor = next(x for x in args if isinstance(x, Tensor))
    return first.new_empty(first.shape)


@dataclass(frozen=True, eq=False)
class Op:
    """Record of one operator: its definition, its derivatives, and the cases that it is checked on.

    By default the Tensor arguments share their leading axes, after the public function has broadcast them, and `vmap`
    adds one more. For arguments that do not, such as weights, or if a statistic is taken over the batch, set
    `vmap="loop"`.

    `fake`, `warmup` and `causal` name the arguments that they need, as formulas do: `warmup=lambda window: window - 1`.

    Args:
        name: namespace and name, "mine::square", under which PyTorch knows the operator, `torch.ops.mine.square`.
        reference: the definition in plain PyTorch. Its signature is the schema; it runs on devices without a kernel.
        backward: (gradient of each output, *, saved values) -> gradient of each Tensor argument, or None; "reference"
            differentiates the reference. Without one the outputs are constants.
        jvp: (tangent of each Tensor argument, *, saved values) -> tangent of each output; default: derived from
            `backward`.
        fake: (arguments by name) -> outputs of the right shape, dtype and strides, without values; default: one output
            like the first Tensor argument, contiguous.
        decomposition: the reference without a loop over time, for ONNX; default: the reference.
        mask_nan_grad: set the incoming gradient of a NaN output to zero, and NaN to zero in outputs that `backward`
            names. If False, `backward` receives both unchanged.
        materialize_grads: pass zeros to `backward` as the gradient of an unused output; if False, None.
        mutates_args: names of the arguments that the operator writes to. Formulas see a function: these names are the
            old values, and the new values are its first outputs.
        once_differentiable: `backward` cannot be differentiated itself; a second derivative raises an error.
        cases: samples, bad inputs, golden numbers and an oracle for `check`.
        warmup: (settings by name) -> number of warm-up rows, or a tuple of one number for each output.
        causal: whether row t depends on rows <= t only; or (settings by name) -> bool.
        time: time axis of the inputs and of the outputs; None if there is no time axis.
        vmap: "batch": batching adds one leading axis; "loop": `vmap` calls the operator for each sample.

    Raises:
        TypeError: the reference is no function, has a list of Tensors as an argument or an output that is no Tensor; an
            operator with several outputs has no `fake`; `fake`, `warmup` or `causal` has a parameter that is not an
            argument of the reference; or a formula names a value that the operator does not have.
        ValueError: the name is no namespace::name, or that of an operator of another package.
        RuntimeError: a native library has declared the operator with another schema.

    Example:
        >>> import torch
        >>> from torch_opkit import Op
        >>> def reference(x: torch.Tensor) -> torch.Tensor:
        ...     return x * x
        >>> square = Op("doctest::square", reference=reference, backward=lambda grad, *, x: 2 * x * grad)
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> square(x).backward()
        >>> x.grad
        tensor(6.)
    """

    name: str
    reference: Callable[..., Any]
    backward: Formula | Literal["reference"] | None = None
    jvp: Formula | None = None
    fake: Callable[..., Any] = _like_first
    decomposition: Callable[..., Any] | None = None
    mask_nan_grad: bool = True
    materialize_grads: bool = True
    mutates_args: tuple[str, ...] = ()
    once_differentiable: bool = False
    cases: Callable[[], Cases] | None = None
    warmup: Callable[..., int | tuple[int, ...]] = lambda *settings: 0
    causal: bool | Callable[..., bool] = True
    time: tuple[int, int] | None = (-2, -2)
    vmap: Literal["batch", "loop"] = "batch"
    overload: torch._ops.OpOverload = field(init=False, repr=False)
    gradients: Gradients | None = field(init=False, repr=False)
    kernel: Callable[..., Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", self.name):
            raise ValueError(f"Op: name must be a namespace and a name, as mine::square; got {self.name!r}")
        if not callable(self.reference):
            raise TypeError(f"Op {self.name}: reference must be a function in plain PyTorch; got {self.reference!r}")
        namespace, _, name = self.name.rpartition("::")
        object.__setattr__(self, "name", name)
        _check_not_taken(namespace, name, self.reference)
        signature = _infer_schema(name, self.reference, self.mutates_args)
        object.__setattr__(self, "reference", _by_position(self.reference))
        overload = _declare(namespace, name, signature)
        if self.fake is _like_first and not overload._schema.returns:
            object.__setattr__(self, "fake", lambda *args: None)  # it only writes to its arguments
        if self.fake is _like_first and len(overload._schema.returns) != 1:
            raise TypeError(f"Op {name}: fake is required for {len(overload._schema.returns)} outputs; got none")
        for field_name in ("fake", "warmup", "causal"):
            function = getattr(self, field_name)
            if callable(function):
                tensors = field_name == "fake"  # the others depend on settings only
                object.__setattr__(self, field_name, _by_name(f"Op {name}: {field_name}", function, overload, tensors))
        gradients = self._gradients(overload) if self.backward else None
        object.__setattr__(self, "gradients", gradients)
        object.__setattr__(self, "overload", overload)
        object.__setattr__(self, "kernel", autograd_kernel(gradients) if gradients else constant_kernel(overload))
        if self.qualified_name not in OPERATORS:
            _register(self)
        OPERATORS[self.qualified_name] = self
        _update_cache_tag(self)
        decomposition = _with_defaults(self.decomposition, overload) if self.decomposition else self.reference
        private.decomposition_table[overload] = decomposition  # torch.onnx.export reads it
        private.meta_table[overload] = self.fake  # else fake tensors of symbolic shape would run the decomposition

    def _gradients(self, overload: torch._ops.OpOverload) -> Gradients:
        backward = self.backward
        if backward == "reference":
            backward = differentiate_reference(self.reference, overload)
        if not callable(backward):
            expected = 'backward must be a formula, or "reference", which differentiates the reference'
            raise TypeError(f"Op {overload._opname}: {expected}; got {backward!r}")
        options = (self.mask_nan_grad, self.materialize_grads, self.once_differentiable)
        return Gradients(overload, backward, self.jvp, *options)

    @property
    def qualified_name(self) -> str:
        return str(self.overload._name)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices with a native kernel; on all others the reference runs."""
        keys = {"CPU": "cpu", "CUDA": "cuda"}
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        return tuple(device for key, device in keys.items() if has_kernel(self.qualified_name, key))

    @property
    def native(self) -> bool:
        """Whether a native library owns the schema: a compiled model then needs that library only, no Python."""
        return self.qualified_name not in _DEFINED_HERE

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run the operator. float16 and bfloat16 are computed in float32 and returned in their own dtype."""
        if kwargs:
            args = self._bind(args, kwargs)
        for x in args:
            if x is not None and isinstance(x, Tensor) and x.dtype in HALF_DTYPES:
                return self._in_float32(args)
        if torch.compiler.is_compiling() or private.transforms_active():
            return self.overload(*args)
        return self.kernel(None, *args)  # the same result, with one pass less through the dispatcher

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            bound = inspect.signature(self.reference).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())  # those by keyword only too, in the order of the schema

    def _in_float32(self, args: tuple[Any, ...]) -> Any:
        single = [x.float() if isinstance(x, Tensor) and x.dtype in HALF_DTYPES else x for x in args]
        outputs = self(*single)
        for i in mutated_indices(self.overload):
            args[i].copy_(single[i])
        dtypes = {x.dtype for x in args if is_floating(x)}
        dtype = dtypes.pop() if len(dtypes) == 1 else torch.float32
        return tree_map(lambda y: y.to(dtype) if is_floating(y) else y, outputs)

    def batched(self, info: Any, in_dims: tuple[int | None, ...], *args: object) -> tuple[Any, Any]:
        """Rule for `vmap`: batching is one more leading axis of every Tensor, or one call for each sample."""

        def move_first(x: Any, dim: int | None) -> Any:
            if not isinstance(x, Tensor):
                return x
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)

        for i in mutated_indices(self.overload):
            if in_dims[i] is None:
                raise RuntimeError(
                    f"{self.name}: under vmap, an argument that is written to must be batched as the others are; got "
                    f"argument {i} without a batch axis: clone it for each sample, or add it to in_dims"
                )
        batch = [*map(move_first, args, in_dims)]
        if self.vmap == "loop":
            samples = [[x[k] if isinstance(x, Tensor) else x for x in batch] for k in range(info.batch_size)]
            each = [self.overload(*sample) for sample in samples]
            outputs = tree_map(lambda *ys: torch.stack(ys), *each) if each[0] is not None else None
        else:
            outputs = self.overload(*batch)
        return outputs, tree_map(lambda _: 0, outputs)

    def fallback(self, *args: object) -> Any:
        """The reference as a kernel, for devices without a native one and where no library could be loaded."""
        for device in {x.device.type for x in args if isinstance(x, Tensor)} - {"cpu"}:
            _warn_reference(self.qualified_name.split("::")[0], device)
        return self.reference(*args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:  # pickled and copied by name
        return _find_record, (self.reference.__module__, self.qualified_name)


def _infer_schema(name: str, reference: Callable[..., Any], mutates_args: tuple[str, ...]) -> str:
    """The schema of a reference, without the mark of keyword-only arguments: kernels take all of them by position."""
    signature = torch.library.infer_schema(reference, mutates_args=mutates_args)
    if _keyword_only(reference):
        signature = signature.replace("*, ", "", 1)
        for first, second in pairwise(inspect.signature(reference).parameters.values()):
            if first.default is not first.empty and second.default is second.empty:
                expected = "arguments without a default must come first, those by keyword only too"
                raise TypeError(f"Op {name}: {expected}; got {second.name} after {first.name}")
    schema = private.parse_schema(f"{name}{signature}")
    for argument in schema.arguments:
        if "Tensor" in str(argument.type) and not private.is_tensor_like_type(argument.type):
            raise TypeError(
                f"Op {name}: arguments must be Tensors, Tensors that may be None, or settings; got {argument.name}, a "
                f"{argument.type}, which would have no gradient: pass one stacked Tensor, or an argument for each"
            )
    if others := [str(output.type) for output in schema.returns if str(output.type) != "Tensor"]:
        raise TypeError(
            f"Op {name}: outputs must be Tensors, one or a tuple of them; got {', '.join(others)}: return a number as "
            "a Tensor of shape (), a list as a tuple or one stacked Tensor, and a single output as Tensor"
        )
    return signature


def _keyword_only(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def _by_position(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference, called by position for its keyword-only parameters too, as kernels are called."""
    names = _keyword_only(reference)
    if not names:
        return reference
    first = len(inspect.signature(reference).parameters) - len(names)

    @functools.wraps(reference)
    def call(*args: object, **kwargs: object) -> Any:
        return reference(*args[:first], **dict(zip(names, args[first:])), **kwargs)

    return call


def _by_name(label: str, function: Callable[..., Any], overload: torch._ops.OpOverload, tensors: bool) -> Any:
    """Wrap a function that names some arguments as a function of all of them, or of all settings, by position."""
    schema = overload._schema.arguments
    names = [a.name for a in schema if tensors or not private.is_tensor_like_type(a.type)]
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return function
    if unknown := [name for name in parameters if name not in names]:
        raise TypeError(f"{label} must name arguments of the reference, {', '.join(names)}; got {', '.join(unknown)}")

    def call(*values: object) -> Any:
        named = dict(zip(names, private.fill_defaults(overload._schema, values, {})[0] if tensors else values))
        return function(**{name: named[name] for name in parameters})

    return call


def _with_defaults(function: Callable[..., Any], overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """Pass every argument to the function: a graph leaves out those that equal the schema's defaults."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        args, kwargs = private.fill_defaults(overload._schema, args, kwargs)
        return function(*args, **kwargs)

    return call


def _check_not_taken(namespace: str, name: str, reference: Callable[..., Any]) -> None:
    """Another reference would replace the operator of an installed package wherever that package calls it."""

    def package(function: object) -> str:
        return getattr(function, "__module__", "").partition(".")[0]

    existing = OPERATORS.get(f"{namespace}::{name}")
    owner = package(existing.reference) if existing else ""
    if hasattr(sys.modules.get(owner), "__path__") and owner != package(reference):  # not a module that is run again
        raise ValueError(
            f"Op: name must not be that of an operator of {owner}; got {namespace}::{name}; take a namespace of your "
            f"own, as mine::{name}"
        )


def _declare(namespace: str, name: str, signature: str) -> torch._ops.OpOverload:
    """Define the operator, unless a native library has; then its schema must be the reference's."""
    operators = getattr(torch.ops, namespace)
    if not hasattr(operators, name):
        _library(namespace).define(f"{name}{signature}", tags=(torch.Tag.pt2_compliant_tag,))
        _DEFINED_HERE.add(f"{namespace}::{name}")
    overload: torch._ops.OpOverload = getattr(operators, name).default
    expected = private.parse_schema(f"{namespace}::{name}{signature}")
    if overload._schema != expected:
        raise RuntimeError(f"Op {name}: the reference must have the declared schema {overload._schema}; got {expected}")
    return overload


def _library(namespace: str) -> torch.library.Library:
    if namespace not in _LIBRARIES:
        _LIBRARIES[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _LIBRARIES[namespace]


def _register(op: Op) -> None:
    """Register once per process: a module that is reloaded replaces the record, not the registration."""
    name = op.qualified_name
    library = _library(name.split("::")[0])

    def current(attribute: str) -> Callable[..., Any]:
        return lambda *args: getattr(OPERATORS[name], attribute)(*args)

    library.impl(op.name, current("fallback"), "CompositeExplicitAutograd")

    def fake(*args: object) -> Any:
        private.allow_fallback(name)  # Inductor runs the fake before it lowers the operator
        return OPERATORS[name].fake(*args)

    torch.library.register_fake(name, fake, lib=library)
    torch.library.register_vmap(name, current("batched"), lib=library)
    library.impl(op.name, current("kernel"), "Autograd", with_keyset=True)
    if mutated_indices(op.overload):
        library.impl(op.name, version_kernel(op.overload), "ADInplaceOrView", with_keyset=True)
        return  # autocast would write to a copy in another dtype
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(name, device, torch.float32, lib=library)


def _update_cache_tag(op: Op) -> None:
    """Let `torch.compile` compile again after a formula has changed.

    It caches its results on disk, under a key that contains only the name of an operator: after a change of `backward`,
    a new process would silently run the old gradient. The key includes a tag that users may set; ours is a hash of the
    files that contain the formulas.
    """
    content = hashlib.sha256()
    for formula in op.gradients.required if op.gradients else ():
        code = getattr(inspect.unwrap(formula), "__code__", None)
        if code:
            file = Path(code.co_filename)
            content.update(file.read_bytes() if file.is_file() else code.co_code + repr(code.co_consts).encode())
    _FORMULA_HASHES[op.qualified_name] = content.hexdigest()
    hashes = "".join(f"{name}{_FORMULA_HASHES[name]}" for name in sorted(_FORMULA_HASHES))
    compiler.cache_key_tag = f"{_CACHE_KEY_TAG}torch_opkit-{hashlib.sha256(hashes.encode()).hexdigest()}"


def _find_record(module: str, name: str) -> Op:
    importlib.import_module(module)
    return OPERATORS[name]


@cache
def _warn_reference(namespace: str, device: str) -> None:
    warnings.warn(
        f"{namespace} has no native kernels for {device}: its operators run through their slower references",
        RuntimeWarning,
        stacklevel=3,
    )
